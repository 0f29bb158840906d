"""MXNet, by files that we read ourselves and a worker in an environment of its own."""
