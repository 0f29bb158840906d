// The form for a key. The key goes to the server once, which answers with a cookie that no script can read.

import { useState } from "preact/hooks";
import { change, type Refusal } from "../api";
import { listen } from "../live";

export function SignIn({ refusal }: { refusal: Refusal }) {
  const [key, setKey] = useState("");
  const [said, setSaid] = useState("");
  const send = async (event: Event) => {
    event.preventDefault();
    setSaid("");
    try {
      await change("/session", { key });
      await listen();
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form class="sign-in" onSubmit={(event) => void send(event)}>
      <h1>This server asks for a key</h1>
      <p class="lead">{refusal.message}</p>
      <label>
        <span>Key</span>
        <input
          type="password"
          autocomplete="current-password"
          required
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
      </label>
      <p class="refusal" role="alert">
        {said}
      </p>
      <button class="main" type="submit">
        Sign in
      </button>
    </form>
  );
}
