// The request that would be sent, in three languages, to copy.

import { useState } from "preact/hooks";
import { useLive } from "../live";
import { type Language, type Prepared, snippet, withKey } from "../snippets";
import { Copy } from "./parts";

const LANGUAGES: Language[] = ["curl", "Python", "JavaScript"];

export function Snippets({ request }: { request: Prepared }) {
  const [language, setLanguage] = useState<Language>("curl");
  const asksForKey = useLive().isSignedIn;
  const text = snippet(language, asksForKey ? withKey(request) : request, location.origin);
  return (
    <section class="snippets" aria-label="The same request to copy">
      <div class="snippets-head">
        <fieldset class="kinds small">
          <legend>The same request as</legend>
          {LANGUAGES.map((one) => (
            <label key={one}>
              <input type="radio" name="language" checked={one === language} onChange={() => setLanguage(one)} />
              <span>{one}</span>
            </label>
          ))}
        </fieldset>
        <Copy text={text} what={`the request as ${language}`} />
      </div>
      <pre tabIndex={0} aria-label={`The request as ${language}`}>
        {text}
      </pre>
      {asksForKey && <p class="note">This server asks for a key: put yours in the place of YOUR_KEY.</p>}
    </section>
  );
}
