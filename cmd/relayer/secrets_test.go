package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/infra/keys/keystest"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// No output, file or answer of a relayer contains a secret, with and without faults: its keys, a
// keystore's passphrase, the webhooks' signing secrets and URLs, an API key, and a node's
// password.
func TestSecretsStayIn(t *testing.T) {
	t.Parallel()
	const canary = "canary-5d0c9e7f41"
	remote := remoteSigner(t, 1)
	hooks := webhookFlags(t)
	w := newWorld(t, kinds()[1], inPostgres, append(append(keystore(t, 0), "--signers-remote-url="+remote.URL, "--log-level=debug", "--signers-failures=1"), hooks...)...)
	w.flags = with(w.flags, fmt.Sprintf("--chains=%s=%s,http://user:%s@127.0.0.1:9/%s", w.id, w.node.URL(), canary, canary), "--endpoints-agree=1")
	s := w.relayer(t)
	s.Env = []string{strings.Replace(keys[2], "KEY_2", "KEY_0", 1)}
	check(t, s.Start(w.ctx))
	h, c, operator := newHook(t), w.client(t, s), w.operator(s)
	first := w.several(0, 2, "told")
	w.create(t, []client{c}, first...)
	var told shown
	status, err := c.do(http.MethodPost, "/v1/intents", hookedWish(w.one(2, "hooked"), h.url), &told)
	if err != nil || status != http.StatusAccepted {
		t.Fatal(status, err)
	}
	remote.Misbehave(keystest.Trouble{By: &keystest.Key{Kind: chain.Secp256k1, Secret: secretOf(t, 0)}})
	w.create(t, []client{c}, w.one(1, "fails")) // with a signature of another key
	w.becomes(t, "the others are done, and it is told of one", func() bool {
		for _, r := range first {
			if w.status(t, c, r) != intent.StatusCompleted {
				return false
			}
		}
		return h.has(told.ID, 4)
	})
	key := operator.makeKey(t, "read", "admin")

	var said strings.Builder
	for _, args := range [][]string{{"config", "print", "--origin"}, {"doctor"}, {"doctor", "--json"}, {"verify", "--quiet"}, {"consumers", "list"}} {
		run, err := rig.Run(w.ctx, nil, s.Env, program, append(args, w.flags...)...)
		check(t, err)
		said.WriteString(run.Says())
	}
	for _, url := range []string{
		s.Metrics + "/metrics", s.URL + "/health", operator.url + "/admin/signers", operator.url + "/admin/safeguards", operator.url + "/admin/keys",
		c.url + "/v1/intents", c.url + at(first[0]), c.url + "/v1/intents/" + told.ID.String(), c.url + "/v1/events?after=0&until=head",
	} {
		req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url, nil)
		check(t, err)
		req.Header.Set("X-Api-Key", key)
		res, err := http.DefaultClient.Do(req)
		check(t, err)
		text, err := io.ReadAll(res.Body)
		check(t, err)
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s answers %d, %v", url, res.StatusCode, err)
		}
		said.Write(text)
	}
	check(t, s.Stop(w.ctx))
	check(t, os.WriteFile(filepath.Join(w.dir, "said"), []byte(said.String()), 0o600)) // beside the log, where stayIn searches

	signing, err := os.ReadFile(strings.TrimPrefix(hooks[0], "--webhooks-secrets-file="))
	check(t, err)
	_, token, _ := strings.Cut(strings.TrimPrefix(key, "wt_"), "_")
	secrets := map[string][]byte{
		"a node's password": []byte(canary), "a keystore's passphrase": []byte("correct horse"), "a webhook's URL": []byte(hush),
		"what webhooks are signed with": []byte(strings.TrimPrefix(strings.TrimSpace(string(signing)), "whsec_")), "an API key": []byte(token),
	}
	for n := range keys {
		secrets[fmt.Sprint("key ", n)] = secretOf(t, n)
	}
	w.stayIn(t, secrets, w.events(t))
}
