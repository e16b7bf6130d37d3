package server_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

func ask(t *testing.T, url, method, params string) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true // no idle connection may remain
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	var answer struct{ Result json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return string(answer.Result)
}

// Two chains run at the same time. After a restart a chain has the same port and its earlier
// blocks.
func TestAnvil(t *testing.T) {
	program := testenv.Need(t, testenv.AnvilVar)
	state := filepath.Join(t.TempDir(), "state.json")
	var chains []*server.Anvil
	for _, flags := range [][]string{{"--state", state}, {}} {
		a, err := server.NewAnvil(program, append(server.TempoFlags(), flags...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := a.Remove(); err != nil {
				t.Error(err)
			}
		})
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if id := ask(t, a.URL(), "eth_chainId", "[]"); id != `"0xa5bf"` {
			t.Fatalf("chain id %s, want 42431", id)
		}
		chains = append(chains, a)
	}
	if chains[0].URL() == chains[1].URL() {
		t.Fatalf("both are at %s", chains[0].URL())
	}

	kept := chains[0]
	url := kept.URL()
	ask(t, url, "anvil_mine", `["0x3"]`)
	head := ask(t, url, "eth_getBlockByNumber", `["latest",false]`)
	if err := kept.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := kept.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kept.URL() != url {
		t.Errorf("it came back at %s, not at %s", kept.URL(), url)
	}
	if again := ask(t, url, "eth_getBlockByNumber", `["latest",false]`); again != head {
		t.Errorf("it came back with head %s, had %s", again, head)
	}
}
