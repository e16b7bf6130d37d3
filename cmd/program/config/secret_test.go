package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func TestSecretShowsSchemeAndHost(t *testing.T) {
	for url, want := range map[string]string{
		"":                                   "",
		"http://127.0.0.1:8545":              "http://127.0.0.1:8545",
		"http://127.0.0.1:8545/":             "http://127.0.0.1:8545",
		"https://h/v2/KEY":                   "https://h/…",
		"https://h/?key=KEY":                 "https://h/…",
		"https://h#KEY":                      "https://h/…",
		"https://u:KEY@h":                    "https://h/…",
		"https://KEY@h:1/":                   "https://h:1/…",
		"postgres://u:KEY@h1:1,h2:2/db":      "postgres://h1:1,h2:2/…",
		"postgres://u:K@EY@h/db":             "postgres://h/…",
		"postgres://u:12/KEY@h/db":           "postgres://…",
		"postgres://u:12?KEY@h/db":           "postgres://…",
		"postgres://u:12#KEY@h/db":           "postgres://…",
		"postgres://u:KEY/x@h":               "postgres://…",
		"postgres:///db?host=/run&password=": "postgres://…",
		"KEY":                                "…",
		"KEY:x@y://z":                        "…",
		"%KEY://h":                           "…",
		"mailto:KEY":                         "…",
	} {
		if got := NewSecret(url).String(); got != want {
			t.Errorf("%q is shown as %q, not %q", url, got, want)
		}
		if got := NewSecret(url).Reveal(); got != url {
			t.Errorf("%q is revealed as %q", url, got)
		}
	}
	if !NewSecret("a").Equal(NewSecret("a")) || NewSecret("a").Equal(NewSecret("b")) || !NewSecret("").Equal(Secret{}) {
		t.Error("Equal does not compare the URLs")
	}
}

const canary = "hunter2canary"

// No way of printing a configuration shows its secrets.
func TestConfigKeepsItsSecrets(t *testing.T) {
	in := input{
		file: "chains:\n  - id: 2\n    endpoints:\n      - {url: https://h/" + canary + ", websocket: 'wss://h/?k=" + canary + "'}\n",
		env: []string{
			"WATCHTOWER_STORE=postgres://u:" + canary + "@h/db",
			"WATCHTOWER_DATABASE=postgresql:///db?host=/run&password=" + canary,
		},
	}
	c, settings, err := in.resolve(t)
	if err != nil {
		t.Fatal(err)
	}
	if c.Store.URL.Reveal() == "" || !strings.Contains(c.Chains[0].Endpoints[0].WebSocket.Reveal(), canary) {
		t.Fatal("the secrets are not there")
	}
	hidden := struct{ c Config }{c} // fmt calls no methods on unexported fields
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X"} {
		for _, value := range []any{c, &c, hidden, settings, c.Store.URL, &c.Store.URL, c.Chains} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
	}
	for _, logger := range []*slog.Logger{slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))} {
		logger.Info("x", "config", c, "store", c.Store, "url", c.Store.URL, "settings", settings)
	}
	for _, encode := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		text, err := encode(c)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	shown := strings.ToLower(out.String())
	for _, secret := range []string{canary, fmt.Sprintf("%x", canary)} {
		if i := strings.Index(shown, secret); i >= 0 {
			t.Errorf("shown: %s", shown[max(i-200, 0):min(i+50, len(shown))])
		}
	}
}

func TestSecretInEveryOutput(t *testing.T) {
	secret := NewSecret("postgres://u:p@h/db")
	const want = "postgres://h/…"
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%08.3f"} {
		if got := fmt.Sprintf(verb, secret); got != want {
			t.Errorf("%s prints %s", verb, got)
		}
	}
	text, err := json.Marshal(map[string]any{"url": secret})
	if got := string(text); err != nil || got != `{"url":"`+want+`"}` {
		t.Errorf("JSON is %s, %v", got, err)
	}
	if got := slog.AnyValue(secret).Resolve(); got.Kind() != slog.KindString || got.String() != want {
		t.Errorf("logged as %v", got)
	}
	if got := fmt.Sprintf("%#v", Secret{}); got != "" {
		t.Errorf("no URL prints %s", got)
	}
}

// No problem of a configuration shows a secret.
func TestProblemsKeepSecrets(t *testing.T) {
	url := "postgres://u:" + canary + "@h/db"
	for _, in := range []input{
		{file: "databse: " + url + "\n"},
		{file: "databse: " + url + ": x\n"},
		{file: "store: " + url + "\n  x\n listen: y: z\n"},
		{file: "store: \"" + url + "\n"},
		{file: "store: [" + url + "]\n"},
		{file: "store: {" + url + ": x}\n"},
		{file: url + ": x\n"},
		{file: "listen: " + url + "\n"},
		{file: "log: {level: " + url + "}\n"},
		{file: "api: {max-batch: " + url + "}\n"},
		{file: "shutdown-grace: " + url + "\n"},
		{file: "chains: [{id: 1, endpoints: [" + url + "], foo: 1}]\n"},
		{file: "chains: [{id: 1, endpoints: [{url: http://h/" + canary + ", foo: 1}]}]\n"},
		{file: "chains: [{id: 1, endpoints: [http://h/" + canary + ", http://h/" + canary + "]}]\n"},
		{file: "chains: [{id: 1, name: " + url + ", endpoints: [http://h:x/" + canary + "]}\n"},
		{file: "chains: 1=http://h:" + canary + "\n"},
		{env: []string{"WATCHTOWER_STORE=postgres://u:" + canary + "/@h"}},
		{env: []string{"WATCHTOWER_STORE=postgres://u:%" + canary + "@h"}},
		{env: []string{"WATCHTOWER_STORE=" + canary + "://h"}},
		{env: []string{"WATCHTOWER_STOR=" + url}},
		{env: []string{"WATCHTOWER_CHAINS=" + url}},
		{env: []string{"WATCHTOWER_CHAINS=1=" + url}},
		{env: []string{"WATCHTOWER_CHAINS=" + url + "=http://a"}},
		{env: []string{"WATCHTOWER_CONFIRMATIONS=" + url + "=" + url}},
		{env: []string{"WATCHTOWER_CONFIRMATIONS=1=" + url}},
		{env: []string{"WATCHTOWER_LOG_LEVEL=" + url}},
		{env: []string{"WATCHTOWER_VAULT_KEY_FILE=" + strings.Repeat("ab", 32)}},
		{env: []string{"WATCHTOWER_LISTEN=u:" + canary + "@h"}},
		{env: []string{"WATCHTOWER_LISTEN=" + strings.Repeat(canary, 3)}},
		{flags: []string{"--store=" + url, "--store=" + url}},
		{flags: []string{"--watcher-use-websocket=" + url}},
		{flags: []string{"--scheduler-window=" + url}},
	} {
		_, _, err := in.resolve(t)
		if err == nil {
			t.Errorf("taken: %+v", in)
		} else if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "ababab") {
			t.Errorf("%+v\nshows the secret: %v", in, err)
		}
	}
}
