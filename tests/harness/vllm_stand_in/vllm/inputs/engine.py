"""What the engine takes: prompts that somebody has turned into tokens, or embeddings."""


def tokens_input(prompt_token_ids, *, prompt=None, cache_salt=None):
    """A prompt of tokens."""
    return {"type": "token", "prompt_token_ids": prompt_token_ids, "cache_salt": cache_salt}


def embeds_input(prompt_embeds, *, prompt=None, cache_salt=None, prompt_token_ids=None, is_token_ids=None):
    """A prompt of embeddings."""
    return {"type": "embeds", "prompt_embeds": prompt_embeds, "cache_salt": cache_salt}
