"""Language models by OpenVINO GenAI: its continuous batching, stepped, with the texts and answers of this room."""
