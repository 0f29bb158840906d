"""A conversation with a language model in a terminal, over a server's OpenAI API."""
