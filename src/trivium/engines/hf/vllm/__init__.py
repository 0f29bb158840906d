"""Language models computed by vLLM: its engine schedules and computes; requests and texts are read here, as elsewhere."""
