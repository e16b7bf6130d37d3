package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// services are the URLs and keys of both services, for the clients in JavaScript.
func (w *world) services(via func(contract string) string) string {
	all := map[string]map[string]string{}
	for name, g := range w.gates {
		all[name] = map[string]string{"url": g.url, "key": g.key}
		if via != nil {
			all[name]["url"] = via(name)
		}
	}
	return shown(all)
}

// exchange performs calls by one exchange of texts each.
type exchange func(ctx context.Context, text string) (string, error)

func (e exchange) perform(ctx context.Context, call string, with map[string]any) (result, error) {
	text, err := e(ctx, shown(map[string]any{"call": call, "with": with}))
	if err != nil {
		return result{}, err
	}
	var r struct {
		result
		Missing string
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&r); err != nil {
		return result{}, fmt.Errorf("%w: %.200s", err, text)
	}
	if r.Missing != "" {
		return result{}, fmt.Errorf("the TypeScript client has no call %s", r.Missing)
	}
	return r.result, nil
}

// nodeClient runs a script of testdata in Node. Each call is a line, and so is its result.
func (w *world) nodeClient(t *testing.T, app, script string) client {
	t.Helper()
	cmd := exec.CommandContext(w.ctx, "node", script) //nolint:gosec // the test's own
	cmd.Dir, cmd.Env = app, append(os.Environ(), "SERVICES="+w.services(nil))
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	var said bytes.Buffer
	cmd.Stderr = &said
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("node: %v\n%s", err, &said)
		}
	})
	lines := bufio.NewReader(out)
	return exchange(func(_ context.Context, text string) (string, error) {
		if _, err := io.WriteString(in, text+"\n"); err != nil {
			return "", err
		}
		return lines.ReadString('\n')
	})
}

// workerClient runs the client in workerd, bundled as wrangler does it. Each call is a request.
func (w *world) workerClient(t *testing.T, app string) client {
	t.Helper()
	workerd := testenv.Need(t, testenv.WorkerdVar)
	bundle := run(t, app, testenv.Need(t, testenv.EsbuildVar), "worker.mjs", "--bundle", "--format=esm", "--platform=neutral", "--conditions=workerd,worker,browser", "--main-fields=module,main")
	check(t, os.WriteFile(filepath.Join(app, "bundle.mjs"), []byte(bundle), 0o600))
	config := fmt.Sprintf(`using Workerd = import "%sworkerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (modules = [(name = "bundle.mjs", esModule = embed "bundle.mjs")], compatibilityDate = "2026-07-01",
      bindings = [(name = "SERVICES", text = %s)])),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);`, "/"+"workerd/", shown(w.services(nil)))
	check(t, os.WriteFile(filepath.Join(app, "config.capnp"), []byte(config), 0o600))
	told, tells, err := os.Pipe()
	check(t, err)
	cmd := exec.CommandContext(w.ctx, workerd, "serve", "--control-fd=3", "config.capnp") //nolint:gosec // the test's own
	var said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = app, &said, &said, []*os.File{tells}
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		_ = told.Close()
		if t.Failed() {
			t.Logf("workerd: %s", &said)
		}
	})
	check(t, tells.Close())
	var listening struct{ Port int }
	if err := json.NewDecoder(told).Decode(&listening); err != nil || listening.Port == 0 {
		t.Fatalf("workerd does not listen: %v", err)
	}
	return exchange(func(ctx context.Context, text string) (string, error) {
		return ask(ctx, fmt.Sprint("http://127.0.0.1:", listening.Port), text)
	})
}

func ask(ctx context.Context, url, text string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	answer, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		err = fmt.Errorf("workerd answers %d: %s", res.StatusCode, answer)
	}
	return string(answer), err
}

// pageClient runs the client in a page in Chromium. The page and both services have one origin,
// as behind a reverse proxy.
func (w *world) pageClient(t *testing.T, app string) client {
	t.Helper()
	calls, results := make(chan string), make(chan string, 1)
	mux := http.NewServeMux()
	mux.Handle("/package/", http.StripPrefix("/package/", http.FileServer(http.Dir(filepath.Join(app, "node_modules", "@tempo-watchtower", "client")))))
	mux.Handle("/", http.FileServer(http.Dir(app)))
	for name, g := range w.gates {
		mux.Handle("/"+name+"/", http.StripPrefix("/"+name, g))
	}
	mux.HandleFunc("/services", func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, w.services(func(contract string) string { return "http://" + r.Host + "/" + contract }))
	})
	mux.HandleFunc("POST /next", func(rw http.ResponseWriter, r *http.Request) {
		done, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if len(done) > 0 {
			results <- string(done)
		}
		select {
		case call := <-calls:
			_, _ = io.WriteString(rw, call)
		case <-r.Context().Done():
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	testenv.Browse(t, server.URL+"/page.html")
	return exchange(func(ctx context.Context, text string) (string, error) {
		select {
		case calls <- text:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		select {
		case done := <-results:
			return done, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
}
