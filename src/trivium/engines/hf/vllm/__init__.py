"""Language models computed by vLLM: its engine schedules and computes; texts are read here, as elsewhere."""
