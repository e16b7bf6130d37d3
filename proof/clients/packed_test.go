package clients_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// packed is the TypeScript client as npm packs it, installed in a folder without any other
// package. It is packed once for all tests.
func packed(t *testing.T) (app string) {
	t.Helper()
	tarball.once.Do(func() { tarball.path = pack(t) })
	if tarball.path == "" {
		t.Fatal("the client was not packed")
	}
	app = t.TempDir()
	unpack(t, tarball.path, filepath.Join(app, "node_modules", "@tempo-watchtower", "client"))
	check(t, os.CopyFS(app, os.DirFS("testdata")))
	return app
}

// pack compiles and packs the client by npm, and returns the package's path.
func pack(t *testing.T) string {
	t.Helper()
	source, err := os.MkdirTemp(tarball.dir, "client-")
	check(t, err)
	check(t, os.CopyFS(source, os.DirFS(filepath.Join("..", "..", "clients", "typescript"))))
	modules := filepath.Join(source, "node_modules")
	check(t, os.RemoveAll(modules)) // of somebody who works on the client
	check(t, os.RemoveAll(filepath.Join(source, "dist")))
	check(t, os.MkdirAll(filepath.Join(modules, ".bin"), 0o755))
	compiler := filepath.Join(testenv.Need(t, testenv.TypeScriptVar), "node_modules", "typescript")
	for name, from := range map[string]string{
		"typescript": compiler, ".bin/tsc": filepath.Join(compiler, "bin", "tsc"),
		"viem": filepath.Join(testenv.Need(t, testenv.ViemVar), "node_modules", "viem"), // its types
	} {
		from, err := filepath.Abs(from)
		check(t, err)
		check(t, os.Symlink(from, filepath.Join(modules, name)))
	}
	run(t, source, "npm", "pack", "--offline", "--pack-destination", source)
	found, err := filepath.Glob(filepath.Join(source, "*.tgz"))
	check(t, err)
	if len(found) != 1 {
		t.Fatalf("npm pack made %v", found)
	}
	return found[0]
}

// unpack extracts a package, whose files lie in a folder "package", and checks their names.
func unpack(t *testing.T, file, into string) {
	t.Helper()
	f, err := os.Open(file)
	check(t, err)
	defer f.Close() //nolint:errcheck // it was read
	zipped, err := gzip.NewReader(f)
	check(t, err)
	var names []string
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		check(t, err)
		name := strings.TrimPrefix(header.Name, "package/")
		names = append(names, name)
		target := filepath.Join(into, filepath.FromSlash(path.Clean("/"+name)))
		check(t, os.MkdirAll(filepath.Dir(target), 0o755))
		text, err := io.ReadAll(io.LimitReader(archive, 1<<20))
		check(t, err)
		check(t, os.WriteFile(target, text, 0o600))
	}
	for _, want := range []string{"LICENSE", "README.md", "package.json", "dist/index.js", "dist/index.d.ts", "dist/relay.d.ts", "dist/viem.d.ts", "dist/webhook.d.ts"} {
		if !slices.Contains(names, want) {
			t.Errorf("the package has no %s", want)
		}
	}
	for _, name := range names {
		known := name == "LICENSE" || name == "README.md" || name == "package.json" || strings.HasPrefix(name, "dist/")
		if !known || strings.Contains(name, "test") {
			t.Errorf("the package has %s", name)
		}
	}
}

// run runs a program to its end.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", program, args, err, out, &stderr)
	}
	return string(out)
}

// Without viem, every entry but /viem is loaded by import and by require, and imports nothing.
func TestEntries(t *testing.T) {
	t.Parallel()
	app := packed(t)
	for entry, exports := range map[string]string{
		"":         "Client NoAnswerError Relay RpcCallError WatchtowerError WebhookError Webhooks cancelMessage verifyWebhook webhookTolerance",
		"/relay":   "NoAnswerError Relay RpcCallError WatchtowerError Webhooks",
		"/webhook": "WebhookError verifyWebhook webhookTolerance",
	} {
		name := "@tempo-watchtower/client" + entry
		for _, script := range []string{
			`import('` + name + `').then((m) => console.log(Object.keys(m).sort().join(' ')))`,
			`console.log(Object.keys(require('` + name + `')).sort().join(' '))`,
		} {
			if got := strings.TrimSpace(run(t, app, "node", "-e", script)); got != exports {
				t.Errorf("%s exports %s, want %s", name, got, exports)
			}
		}
	}
	const viem = `import('@tempo-watchtower/client/viem').catch((e) => console.log(e.message))`
	if got := run(t, app, "node", "-e", viem); !strings.Contains(got, "Cannot find package 'viem'") {
		t.Errorf("the entry /viem: %s", got)
	}
}

// sizes are the most bytes of an entry, bundled and minified; and of that gzipped.
var sizes = map[string][2]int{"index.js": {15_200, 5_700}, "relay.js": {10_400, 4_200}, "webhook.js": {1_300, 800}}

// Each entry stays small, and needs nothing of Node: the bundler finds no other package.
func TestSizes(t *testing.T) {
	t.Parallel()
	dist := filepath.Join(packed(t), "node_modules", "@tempo-watchtower", "client", "dist")
	for entry, most := range sizes {
		bundle := run(t, dist, testenv.Need(t, testenv.EsbuildVar), entry, "--bundle", "--minify", "--format=esm", "--platform=neutral")
		var zipped bytes.Buffer
		z, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		check(t, err)
		_, err = z.Write([]byte(bundle))
		check(t, errors.Join(err, z.Close()))
		t.Logf("%s: %d bytes, %d gzipped", entry, len(bundle), zipped.Len())
		if len(bundle) > most[0] || zipped.Len() > most[1] {
			t.Errorf("%s has %d bytes, %d gzipped; most are %v", entry, len(bundle), zipped.Len(), most)
		}
	}
}

// A user's program has types in every way that TypeScript resolves packages, without viem, and
// without the types of Node or of the DOM's newest parts.
func TestTypesForUsers(t *testing.T) {
	t.Parallel()
	app := packed(t)
	tsc := filepath.Join(testenv.Need(t, testenv.TypeScriptVar), "node_modules", "typescript", "bin", "tsc")
	tsc, err := filepath.Abs(tsc)
	check(t, err)
	const program = `import { Client, Relay, type Intent, WatchtowerError } from '@tempo-watchtower/client'
import { type IntentRequest, Relay as Small } from '@tempo-watchtower/client/relay'
import { verifyWebhook } from '@tempo-watchtower/client/webhook'
const request: IntentRequest = { chainId: 1, key: 'a', pool: 'hot', to: '0x01', value: 1n }
export const created: Promise<Intent> = new Small('http://a').create(request)
export const id: Promise<string> = verifyWebhook(new Headers(), '', { secrets: [] })
export const both: [Client, Relay] = [new Client('http://a'), new Relay('http://a')]
export const code = (e: unknown): string | undefined => (e instanceof WatchtowerError ? e.problem.code : undefined)
// @ts-expect-error an intent has a key
void new Relay('http://a').create({ chainId: 1, pool: 'hot' })
`
	check(t, os.WriteFile(filepath.Join(app, "user.mts"), []byte(program), 0o600))
	check(t, os.WriteFile(filepath.Join(app, "user.cts"), []byte(program), 0o600))
	check(t, os.WriteFile(filepath.Join(app, "user.ts"), []byte(program), 0o600))
	for _, kind := range [][]string{
		{"--module", "nodenext", "user.mts"}, {"--module", "nodenext", "user.cts"}, {"--module", "node20", "user.cts"}, {"--module", "node16", "user.mts"},
		{"--module", "esnext", "--moduleResolution", "bundler", "user.ts"},
	} {
		run(t, app, "node", append([]string{tsc, "--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom"}, kind...)...)
	}
}

// The package has the project's licence.
func TestLicence(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile(filepath.Join("..", "..", "clients", "typescript", "LICENSE"))
	check(t, err)
	whole, err := os.ReadFile(filepath.Join("..", "..", "LICENSE"))
	check(t, err)
	if !bytes.Equal(own, whole) {
		t.Error("clients/typescript/LICENSE is not LICENSE")
	}
}
