"""Services over gRPC tell programs how they are called."""
