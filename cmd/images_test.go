package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// imageNames finds the images named in files: of services, of build stages and their copies, of
// the builder's syntax, and of docker commands in documents.
var imageNames = regexp.MustCompile(`(?m)^\s*image:[ \t]*["']?([^\s"'#]+)|^FROM\s+(?:--\S+\s+)?(\S+)(?:\s+(?i:AS)\s+(\S+))?|--from=(\S+)|^#\s*syntax=(\S+)|` +
	`docker (?:run|pull|create)\b[^\n` + "`" + `]*?\s([a-z0-9./-]+/[a-z0-9./-]+(?:[:@][\w.:@-]+)?|[a-z][a-z0-9-]+:[\w.-]+)(?:[\s` + "`" + `]|$)`)

// exactImage is an image with a digest, or with a version of three numbers. Postgres has had versions
// of two numbers since 10.
var exactImage = regexp.MustCompile(`^[\w./-]+(:[\w.-]+)?@sha256:[0-9a-f]{64}$|^[\w./-]+:v?\d+\.\d+\.\d+(-[\w.-]+)?$|^postgres:\d+\.\d+(-[\w.]+)?$`)

// floatingTag is an image with a tag that moves.
var floatingTag = regexp.MustCompile(`\b[a-z][a-z0-9./-]*:(latest|stable|lts|nightly|edge|mainline)\b`)

// imagesIn returns the images of a text, without the names of its own build stages.
func imagesIn(text string) (all []string) {
	var stages []string
	for _, found := range imageNames.FindAllStringSubmatch(text, -1) {
		if found[3] != "" {
			stages = append(stages, found[3])
		}
		for _, i := range []int{1, 2, 4, 5, 6} {
			if name := found[i]; name != "" && !slices.Contains(stages, name) && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// namesImages reports whether a file may name images to run or to build from.
func namesImages(file string) bool {
	return strings.Contains(path.Base(file), "Dockerfile") ||
		slices.Contains([]string{".yml", ".yaml", ".md", ".sh"}, path.Ext(file)) || file == ".ci/run" || file == "Makefile"
}

// TestImagesAreExact: every image that the tree names has an exact version, so that a
// deployment runs the programs that were tried.
func TestImagesAreExact(t *testing.T) {
	seen := 0
	for _, file := range files(t) {
		if !namesImages(file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, image := range imagesIn(string(text)) {
			if seen++; !exactImage.MatchString(image) {
				t.Errorf("%s names the image %s, whose tag is no exact version", file, image)
			}
		}
		for _, found := range floatingTag.FindAllString(string(text), -1) {
			t.Errorf("%s names %s, whose tag moves", file, found)
		}
	}
	if seen < 8 {
		t.Errorf("only %d images were found", seen)
	}
}

func TestImagesFindFaults(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0f", 32)
	for image, exact := range map[string]bool{
		"redis:7.4.9-alpine": true, "postgres:17.6": true, "ghcr.io/a/b:v1.7.1": true, "gcr.io/a/b:nonroot" + digest: true, "a/b" + digest: true,
		"redis": false, "redis:7": false, "redis:7.4-alpine": false, "postgres:17": false, "a/b:stable": false, "a/b:nonroot": false,
		"a/b:latest": false, "a/b:25.0": false, "a/b@sha256:0f": false, "a/b:${VERSION}": false, "host:5000/a:1": false,
	} {
		if exactImage.MatchString(image) != exact {
			t.Errorf("%s is exact: %v", image, !exact)
		}
	}
	text := strings.Join([]string{
		"# syntax=docker/dockerfile:1", "FROM golang:1.26 AS build", "FROM --platform=x base:2", "COPY --from=build /a /b", "COPY --from=tools:3 /a /b",
		"FROM build AS last", "    image: postgres:17 # a note", `image: "a/b:c"`,
		"Run `docker run --rm -p 1:1 -v a:/b quay.io/x/y:9 serve`, or docker pull alpine:3", "Run `docker build .`, docker compose up",
	}, "\n")
	want := "[docker/dockerfile:1 golang:1.26 base:2 tools:3 postgres:17 a/b:c quay.io/x/y:9 alpine:3]"
	if got := fmt.Sprint(imagesIn(text)); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

// TestContainersHaveFewRights: the images that we build run as nonroot, and the compose file
// removes the rights that our services do not need.
func TestContainersHaveFewRights(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	targets := regexp.MustCompile(`(?m)^FROM (\S+) AS (\w+)$`).FindAllStringSubmatch(read("Dockerfile"), -1)
	if len(targets) < 3 {
		t.Fatalf("%d stages were found", len(targets))
	}
	for _, target := range targets {
		if target[2] != "build" && !strings.Contains(target[1], ":nonroot@") {
			t.Errorf("the image %s runs on %s, not as nonroot", target[2], target[1])
		}
	}
	ours := 0
	for _, service := range regexp.MustCompile(`(?m)^  \w[\w-]*:$`).Split(read("docker-compose.yml"), -1) {
		if !strings.Contains(service, "build: {") {
			continue
		}
		ours++
		for _, right := range []string{"read_only: true", "cap_drop: [ALL]", `security_opt: ["no-new-privileges:true"]`} {
			if !strings.Contains(service, "\n    "+right+"\n") {
				t.Errorf("a service of ours lacks %s:%s", right, service)
			}
		}
	}
	if ours < 3 {
		t.Errorf("%d services of ours were found", ours)
	}
}

// TestDigests runs make digests with a crane double: it prints a line for each image, and
// nothing at all if a registry does not respond.
func TestDigests(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("OPTIONAL: there is no sh here")
	}
	folder := t.TempDir()
	lock, crane := filepath.Join(folder, "images.lock"), filepath.Join(folder, "crane")
	run := func(answer string) (string, error) {
		t.Helper()
		if err := os.WriteFile(crane, []byte("#!/bin/sh\n"+answer+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), shell, filepath.Join(root, "deploy", "digests.sh"), lock)
		cmd.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
		output, err := cmd.CombinedOutput()
		return string(output), err
	}
	digest := "sha256:" + strings.Repeat("ab", 32)
	if output, err := run(`[ "$1" = digest ] && echo ` + digest); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	written, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(written))
	for _, file := range []string{"docker-compose.yml", "Dockerfile"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, image := range imagesIn(string(text)) {
			image, _, _ = strings.Cut(image, "@")
			if !slices.Contains(lines, image+"@"+digest) {
				t.Errorf("%s has no digest of %s", lines, image)
			}
		}
	}
	for _, trouble := range []string{`echo "no such host" >&2; exit 1`, `echo "not a digest"`} {
		output, err := run(trouble)
		if err == nil || !strings.Contains(output, "the registry of ") {
			t.Errorf("with %q: %v, %s", trouble, err, output)
		}
		if after, err := os.ReadFile(lock); err != nil || string(after) != string(written) {
			t.Errorf("with %q the digests changed: %v", trouble, err)
		}
	}
}
