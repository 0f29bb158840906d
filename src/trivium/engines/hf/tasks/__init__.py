"""Models of texts that are not served in rolling batches: each request is a call, or shares one with others."""
