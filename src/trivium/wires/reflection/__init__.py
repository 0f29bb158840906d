"""gRPC reflection: services tell programs how they are called."""
