// The frame of the page: its head, the link to the server, and the page that the address names.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { change } from "./api";
import { span } from "./format";
import { listen, type Live, useLive } from "./live";
import { modelAddress, route, type Route } from "./route";
import { ApiPage } from "./views/api_page";
import { ModelPage } from "./views/model";
import { OverviewPage } from "./views/overview";
import { ServerPage } from "./views/server";
import { SignIn } from "./views/sign_in";
import "uplot/dist/uPlot.min.css";
import "./style.css";

function Page() {
  const live = useLive();
  const [at, setAt] = useState(() => route(location.hash));
  useEffect(() => {
    const turn = () => setAt(route(location.hash));
    addEventListener("hashchange", turn);
    return () => removeEventListener("hashchange", turn);
  }, []);
  useEffect(() => {
    document.title = at.page === "model" ? `${at.name} – Trivium` : "Trivium";
  }, [at]);
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <Head at={at} live={live} />
      <main id="content" tabIndex={-1}>
        {live.refusal?.status === 401 ? <SignIn refusal={live.refusal} /> : <Content at={at} live={live} />}
      </main>
      <footer class="foot">
        {live.overview && (
          <span>
            Trivium {live.overview.server.version}, {live.overview.server.profile} profile, up for{" "}
            {span(live.now - live.overview.server.started)}
          </span>
        )}
        {live.isSignedIn && (
          <button class="quiet" onClick={() => void change("/session", undefined, "DELETE").then(() => location.reload())}>
            Sign out
          </button>
        )}
      </footer>
    </>
  );
}

function Head({ at, live }: { at: Route; live: Live }) {
  const pages: [string, string, boolean][] = [
    ["#/", "Models", at.page === "overview" || at.page === "model"],
    ["#/server", "Server", at.page === "server"],
    ["#/api", "API", at.page === "api"],
  ];
  const words = { opening: "Connecting", open: "Live", lost: "Connection lost" };
  return (
    <header class="head">
      <div class="head-inner">
        <a class="brand" href="#/">
          Trivium
        </a>
        <nav aria-label="Pages">
          {pages.map(([address, name, isHere]) => (
            <a key={name} href={address} aria-current={isHere ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <span class={`link ${live.link}`} role="status">
          {words[live.link]}
        </span>
      </div>
      <div class="news" role="status">
        {live.news && (
          <p key={live.news.key}>
            {live.news.text} <a href={modelAddress(live.news.model, "workers")}>See its last lines</a>
          </p>
        )}
      </div>
    </header>
  );
}

function Content({ at, live }: { at: Route; live: Live }) {
  if (at.page === "api") return <ApiPage />;
  if (!live.overview) {
    return <p class="waits">{live.refusal ? `${live.refusal.message} Trying again.` : "Asking the server."}</p>;
  }
  if (at.page === "server") return <ServerPage live={live} overview={live.overview} />;
  if (at.page === "model") return <ModelPage key={at.name} name={at.name} part={at.part} live={live} />;
  return <OverviewPage overview={live.overview} />;
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

const root = document.getElementById("page");
if (root) render(<Page />, root);
void listen();
