package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Pinned versions from npm: newer versions tagged latest need packages that are not available
// everywhere.
const (
	anvilVersion    = "1.7.1"
	castVersion     = "1.7.1"
	ethersVersion   = "6.17.0"
	web3Version     = "4.16.0"
	viemVersion     = "2.57.1"
	oxVersion       = "0.14.45"
	nearVersion     = "7.3.1"
	axeVersion      = "4.10.3"
	tsVersion       = "5.9.3"          // the last version with a compiler in JavaScript: it runs wherever node does
	openapiVersion  = "7.13.0"         // the generator of the client's types; needs TypeScript 5
	esbuildVersion  = "0.28.2"         // the bundler that most of the client's users have
	workerdVersion  = "1.20260730.1"   // the runtime of Cloudflare Workers
	redoclyVersion  = "2.77.0"         // one file, without dependencies
	postgresVersion = "18.4.0-beta.17" // Postgres 18.4: only initdb, pg_ctl and postgres
	nodeMajorMin    = 20
)

// Anvil is a development chain that supports Tempo's transactions (--network tempo).
func (b Box) Anvil(ctx context.Context) (Tool, error) {
	return b.first(ctx, anvilAnswers,
		source{"system", func(context.Context) (string, error) { return exec.LookPath("anvil") }},
		source{"npm", b.anvilFromNPM},
	)
}

// anvilAnswers also checks the network: older versions support Ethereum only.
func anvilAnswers(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	help, err := exec.CommandContext(ctx, path, "--help").Output()
	if err != nil {
		return "", fmt.Errorf("%s does not run: %w", path, err)
	}
	if !strings.Contains(string(help), "--network") {
		return "", fmt.Errorf("%s is too old: it has no --network", path)
	}
	line, err := answer(ctx, nil, path, "--version")
	return versionIn(line), err
}

func (b Box) anvilFromNPM(ctx context.Context) (string, error) {
	platform := "@foundry-rs/anvil-" + runtime.GOOS + "-" + runtime.GOARCH
	dir, err := b.npm(ctx, "anvil", pins{"@foundry-rs/anvil": anvilVersion, platform: anvilVersion})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "node_modules", platform, "bin", "anvil"), nil // as npm's own wrapper runs it
}

// Viem is a folder whose node_modules contains viem and ox, a widely used client.
func (b Box) Viem(ctx context.Context) (Tool, error) {
	return b.first(ctx, nodeRuns(viemVersion), source{"npm", func(ctx context.Context) (string, error) {
		return b.npm(ctx, "viem", pins{"viem": viemVersion, "ox": oxVersion})
	}})
}

// Wallets is a folder whose node_modules contains the libraries by which applications talk to a wallet's
// node: ethers and web3.js. viem has a folder of its own.
func (b Box) Wallets(ctx context.Context) (Tool, error) {
	return b.first(ctx, func(ctx context.Context, _ string) (string, error) {
		_, err := nodeRuns("")(ctx, "")
		return "ethers " + ethersVersion + ", web3 " + web3Version, err
	}, source{"npm", func(ctx context.Context) (string, error) {
		return b.npm(ctx, "wallets", pins{"ethers": ethersVersion, "web3": web3Version})
	}})
}

// Cast is Foundry's command line for Ethereum.
func (b Box) Cast(ctx context.Context) (Tool, error) {
	return b.first(ctx, func(ctx context.Context, path string) (string, error) {
		line, err := answer(ctx, nil, path, "--version")
		return versionIn(line), err
	},
		source{"system", func(context.Context) (string, error) { return exec.LookPath("cast") }},
		source{"npm", b.castFromNPM},
	)
}

func (b Box) castFromNPM(ctx context.Context) (string, error) {
	platform := "@foundry-rs/cast-" + runtime.GOOS + "-" + runtime.GOARCH
	dir, err := b.npm(ctx, "cast", pins{"@foundry-rs/cast": castVersion, platform: castVersion})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "node_modules", platform, "bin", "cast"), nil // as npm's own wrapper runs it
}

// NEAR is a folder whose node_modules contains near-api-js, NEAR's client.
func (b Box) NEAR(ctx context.Context) (Tool, error) {
	return b.first(ctx, nodeRuns(nearVersion), source{"npm", func(ctx context.Context) (string, error) {
		return b.npm(ctx, "near", pins{"near-api-js": nearVersion})
	}})
}

// Axe is a folder whose node_modules contains axe-core, which checks pages for accessibility.
func (b Box) Axe(ctx context.Context) (Tool, error) {
	return b.first(ctx, nodeRuns(axeVersion), source{"npm", func(ctx context.Context) (string, error) {
		return b.npm(ctx, "axe", pins{"axe-core": axeVersion})
	}})
}

// TypeScript is a folder whose node_modules contains the compiler, and openapi-typescript.
func (b Box) TypeScript(ctx context.Context) (Tool, error) {
	return b.first(ctx, compilerRuns, source{"npm", func(ctx context.Context) (string, error) {
		return b.npm(ctx, "typescript", pins{"typescript": tsVersion, "openapi-typescript": openapiVersion})
	}})
}

// Esbuild is the program of a bundler.
func (b Box) Esbuild(ctx context.Context) (Tool, error) {
	return b.first(ctx, programRuns, source{"npm", func(ctx context.Context) (string, error) {
		return b.programFromNPM(ctx, "esbuild", "@esbuild/"+runtime.GOOS+"-"+nodeArch(), esbuildVersion)
	}})
}

// nodeArch is node's name of this machine's architecture.
func nodeArch() string {
	if runtime.GOARCH == "amd64" {
		return "x64"
	}
	return runtime.GOARCH
}

// programFromNPM is a program that an npm package for one platform consists of.
func (b Box) programFromNPM(ctx context.Context, name, platform, version string) (string, error) {
	dir, err := b.npm(ctx, name, pins{platform: version})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "node_modules", platform, "bin", name), nil
}

func programRuns(ctx context.Context, path string) (string, error) {
	line, err := answer(ctx, nil, path, "--version")
	return versionIn(line), err
}

// Workerd is the program that runs Cloudflare Workers.
func (b Box) Workerd(ctx context.Context) (Tool, error) {
	return b.first(ctx, programRuns, source{"npm", func(ctx context.Context) (string, error) {
		arch := map[string]string{"x64": "64", "arm64": "arm64"}[nodeArch()]
		return b.programFromNPM(ctx, "workerd", "@cloudflare/workerd-"+runtime.GOOS+"-"+arch, workerdVersion)
	}})
}

// Redocly is a folder whose node_modules contains the linter of OpenAPI documents.
func (b Box) Redocly(ctx context.Context) (Tool, error) {
	return b.first(ctx, linterRuns, source{"npm", func(ctx context.Context) (string, error) {
		return b.npm(ctx, "redocly", pins{"@redocly/cli": redoclyVersion})
	}})
}

// linterRuns starts the linter, because it needs a newer node than npm does to install it.
func linterRuns(ctx context.Context, dir string) (string, error) {
	return answer(ctx, []string{"REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true"},
		"node", filepath.Join(dir, "node_modules", "@redocly", "cli", "bin", "cli.js"), "--version")
}

func compilerRuns(ctx context.Context, dir string) (string, error) {
	line, err := answer(ctx, nil, "node", filepath.Join(dir, "node_modules", "typescript", "bin", "tsc"), "--version")
	return versionIn(line), err
}

// nodeRuns checks that node can run packages, of the pinned version that it returns.
func nodeRuns(version string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, _ string) (string, error) {
		line, err := answer(ctx, nil, "node", "--version")
		if err != nil {
			return "", err
		}
		if v := versionIn(line); major(v) < nodeMajorMin {
			return "", fmt.Errorf("node is %s and must be %d or newer", v, nodeMajorMin)
		}
		return version, nil
	}
}

func (b Box) postgresFromNPM(ctx context.Context) (string, error) {
	platform := "@embedded-postgres/" + runtime.GOOS + "-" + nodeArch()
	dir, err := b.npm(ctx, "postgres-npm", pins{platform: postgresVersion})
	if err != nil {
		return "", err
	}
	native := filepath.Join(dir, "node_modules", platform, "native")
	if err := linkLibraries(native); err != nil {
		return "", err
	}
	return filepath.Join(native, "bin"), nil
}

// linkLibraries creates the links that an npm package cannot contain. The package lists them for
// its install script, which we do not run.
func linkLibraries(native string) error {
	list, err := os.ReadFile(filepath.Join(native, "pg-symlinks.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(list, &links); err != nil {
		return fmt.Errorf("pg-symlinks.json: %w", err)
	}
	root, err := os.OpenRoot(native)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing to lose
	for _, l := range links {
		from, to := strings.TrimPrefix(l.Source, "native/"), strings.TrimPrefix(l.Target, "native/")
		relative, err := filepath.Rel(filepath.Dir(to), from)
		if err != nil {
			return err
		}
		if err := root.Symlink(relative, to); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// pins are npm packages and their exact versions.
type pins map[string]string

// npm installs packages into Dir/name and returns that folder. No package's scripts are run.
func (b Box) npm(ctx context.Context, name string, want pins) (string, error) {
	return b.fetch(ctx, name, want.in, func(ctx context.Context, dir string) error {
		if _, err := exec.LookPath("npm"); err != nil {
			return errors.New("npm is not installed")
		}
		args := []string{"install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"}
		for pkg, version := range want {
			args = append(args, pkg+"@"+version)
		}
		_, err := run(ctx, dir, "npm", args...)
		return err
	})
}

// in reports whether a folder contains all packages in the pinned versions.
func (p pins) in(dir string) bool {
	for pkg, version := range p {
		text, err := os.ReadFile(filepath.Join(dir, "node_modules", pkg, "package.json"))
		if err != nil {
			return false
		}
		var is struct{ Version string }
		if json.Unmarshal(text, &is) != nil || is.Version != version {
			return false
		}
	}
	return true
}

// versionIn is the first word of a program's output that looks like a version: "v20.1.0",
// "postgres (PostgreSQL) 15.18 (Debian …)", "Redis server v=7.0.15 sha=…".
func versionIn(line string) string {
	for word := range strings.FieldsSeq(line) {
		word = strings.TrimLeft(word, "v=")
		if strings.Contains(word, ".") && major(word) >= 0 {
			version, _, _ := strings.Cut(word, "-")
			return version
		}
	}
	return line
}

// major is the number before a version's first dot; -1 if there is none.
func major(version string) int {
	text, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}
