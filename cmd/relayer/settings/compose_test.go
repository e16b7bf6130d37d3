package settings_test

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

const top = "../../.."

// composed is the part of a service of docker-compose.yml used in these tests.
type composed struct {
	Image       string
	Profiles    []string
	Command     []string
	Build       struct{ Target string }
	Environment map[string]string
	Ports       []string
	Volumes     []string
	DependsOn   any `yaml:"depends_on"`
	Healthcheck struct{ Test []string }
}

// Each container of our images asks the program in it for its health.
func TestComposeChecksHealth(t *testing.T) {
	ours := 0
	for name, s := range services(t) {
		if s.Build.Target == "" {
			continue
		}
		ours++
		if want := []string{"CMD", "/usr/local/bin/" + s.Build.Target, "healthcheck"}; len(s.Healthcheck.Test) < len(want) || !slices.Equal(s.Healthcheck.Test[:len(want)], want) {
			t.Errorf("%s asks for its health by %q", name, s.Healthcheck.Test)
		}
	}
	if ours == 0 {
		t.Error("no container has an image of ours")
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func services(t *testing.T) map[string]composed {
	t.Helper()
	var file struct{ Services map[string]composed }
	read(t, "docker-compose.yml", &file)
	for name, s := range file.Services {
		needs, _ := s.DependsOn.(map[string]any)
		for other := range needs {
			on, there := file.Services[other]
			if !there || len(on.Profiles) > 0 && !cmp.Equal(on.Profiles, s.Profiles) {
				t.Errorf("%s needs %s, which does not start with it", name, other)
			}
		}
	}
	return file.Services
}

// environ is the environment of a service's process: the image's, overridden by the service's.
func (s composed) environ(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, image, found := strings.Cut(string(text), " AS "+s.Build.Target+"\n")
	if !found {
		t.Fatalf("the Dockerfile has no target %q", s.Build.Target)
	}
	image, _, _ = strings.Cut(image, "\nFROM ")
	for _, said := range regexp.MustCompile(`(WATCHTOWER_[A-Z_]+)=(\S+)`).FindAllStringSubmatch(image, -1) {
		if _, over := s.Environment[said[1]]; !over {
			all = append(all, said[0])
		}
	}
	for name, value := range s.Environment {
		all = append(all, name+"="+value)
	}
	return all
}

// published lists the ports of a service reachable from this machine, all on loopback.
func (s composed) published(t *testing.T) (ports []string) {
	t.Helper()
	for _, p := range s.Ports {
		parts := strings.Split(p, ":")
		if len(parts) != 3 || parts[0] != "127.0.0.1" {
			t.Fatalf("%s is not on loopback", p)
		}
		ports = append(ports, parts[2])
	}
	slices.Sort(ports)
	return ports
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// The services in docker-compose.yml start with a valid configuration. The relayer has an
// allowed key, and its API listens on the published port.
func TestComposed(t *testing.T) {
	all := services(t)
	tower, relayer := all["watchtower"], all["relayer"]
	c, _, err := config.Resolve(nil, tower.environ(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckServe(); err != nil || c.CheckAccess(false) != nil {
		t.Errorf("the watchtower would not serve: %v", err)
	}
	s, _, err := settings.Resolve(nil, relayer.environ(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{s.CheckServe(), s.Delivery.CheckServe(), s.CheckAccess(false), s.Delivery.CheckAccess(false)} {
		if err != nil {
			t.Errorf("the relayer would not serve: %v", err)
		}
	}
	if s.Delivery.Store.URL.Equal(c.Store.URL) || s.Delivery.Store.Engine != config.Postgres {
		t.Error("the relayer has no log of its own")
	}
	if !cmp.Equal(relayer.Profiles, []string{"relay"}) || len(tower.Profiles) > 0 {
		t.Errorf("profiles %v and %v", relayer.Profiles, tower.Profiles)
	}
	want := []string{port(s.Delivery.Listen), port(s.Delivery.MetricsListen), port(s.Front.Listen)}
	if diff := cmp.Diff(want, relayer.published(t)); diff != "" {
		t.Errorf("ports: %s", diff)
	}
	signers, err := keys.Environment(relayer.environ(t), s.Signers.Environment, slog.New(slog.DiscardHandler))
	if err != nil || len(signers) != 1 {
		t.Fatalf("%v, %v", signers, err)
	}
	if a := signers[0].Address(); !slices.Contains(s.Signers.Allowed, a) || !slices.Contains(s.Pools.Named("hot"), a) {
		t.Errorf("%s may not sign", a)
	}
	forward := all["relayer-forward"]
	f, _, err := settings.Resolve(nil, forward.environ(t), nil)
	if err != nil || !f.Delivery.Store.URL.Equal(s.Delivery.Store.URL) || !slices.Contains(forward.Command, "--to") {
		t.Errorf("the forwarder reads another log: %v", err)
	}
}

// Every published port is on loopback. Of the programs that obey everybody, pages in a browser on the
// machine cannot command the chain, and have no rights in Grafana but to look.
func TestPagesCommandNothingComposed(t *testing.T) {
	all := services(t)
	for name, s := range all {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s to other machines", name, p)
			}
		}
	}
	if anvil := all["anvil"]; !slices.Contains(anvil.Command, "--no-cors") || len(anvil.Ports) > 0 {
		t.Errorf("anvil runs %q and publishes %q", anvil.Command, anvil.Ports)
	}
	if !slices.Contains(all["prometheus"].Command, `--web.cors.origin=http://127\.0\.0\.1:9090`) {
		t.Errorf("Prometheus runs %q: pages of every origin read it", all["prometheus"].Command)
	}
	want := map[string]string{
		"GF_AUTH_ANONYMOUS_ENABLED": "true", "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer", "GF_AUTH_BASIC_ENABLED": "false", "GF_AUTH_DISABLE_LOGIN_FORM": "true",
		"GF_SERVER_DOMAIN": "127.0.0.1", "GF_SERVER_ENFORCE_DOMAIN": "true",
	}
	if diff := cmp.Diff(want, all["grafana"].Environment); diff != "" {
		t.Errorf("Grafana (-want +got):\n%s", diff)
	}
}

// Prometheus scrapes the services that run, at their metrics addresses. It loads every rules
// file from its mount.
func TestScraped(t *testing.T) {
	all := services(t)
	var prometheus struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string                       `yaml:"job_name"`
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
			DNS           []struct {
				Names []string
				Port  int
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	read(t, "deploy/prometheus/prometheus.yml", &prometheus)
	scraped := map[string]bool{}
	for _, job := range prometheus.ScrapeConfigs {
		for _, c := range job.StaticConfigs {
			for _, target := range c.Targets {
				host, at, _ := strings.Cut(target, ":")
				if s, there := all[host]; host != "localhost" && (!there || len(s.Profiles) > 0 || at != "8421") {
					t.Errorf("%s scrapes %s, which does not always run, or not there", job.JobName, target)
				}
				scraped[host] = true
			}
		}
		for _, c := range job.DNS {
			for _, host := range c.Names {
				if s, there := all[host]; !there || len(s.Profiles) == 0 || c.Port != 8421 {
					t.Errorf("%s scrapes %s:%d, which always runs, or not there", job.JobName, host, c.Port)
				}
				scraped[host] = true
			}
		}
	}
	for name, s := range all {
		if s.Build.Target != "" && !scraped[name] {
			t.Errorf("nobody scrapes %s", name)
		}
	}
	mounted := map[string]string{}
	for _, v := range all["prometheus"].Volumes {
		if from, to, ok := strings.Cut(strings.TrimSuffix(v, ":ro"), ":"); ok {
			mounted[to] = from
		}
	}
	loaded := map[string]bool{}
	for _, path := range prometheus.RuleFiles {
		loaded[filepath.Base(mounted[path])] = true
	}
	there, err := filepath.Glob(filepath.Join(top, "deploy/prometheus/*.yml"))
	if err != nil || len(there) < 3 {
		t.Fatal(there, err)
	}
	for _, path := range there {
		if name := filepath.Base(path); name != "prometheus.yml" && !loaded[name] {
			t.Errorf("%s is not loaded: %v", name, slices.Collect(maps.Keys(loaded)))
		}
	}
}

// Prometheus and the other containers reach a service by its name, and the service accepts that
// name.
func TestComposedServicesKnowTheirNames(t *testing.T) {
	var monitor struct {
		ScrapeConfigs []struct {
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	read(t, "deploy/prometheus/prometheus.yml", &monitor)
	all := services(t)
	for name, s := range all {
		if s.Environment["WATCHTOWER_OPEN_ACCESS"] == "true" && !slices.Contains(strings.Split(s.Environment["WATCHTOWER_API_HOSTS"], ","), name) {
			t.Errorf("%s answers without keys, and not to its own name", name)
		}
	}
	scraped := 0
	for _, job := range monitor.ScrapeConfigs {
		for _, to := range job.StaticConfigs {
			for _, target := range to.Targets {
				host, _, _ := strings.Cut(target, ":")
				if s, ours := all[host]; ours {
					scraped++
					if !slices.Contains(strings.Split(s.Environment["WATCHTOWER_API_HOSTS"], ","), host) {
						t.Errorf("Prometheus asks %s, which does not answer to that name", target)
					}
				}
			}
		}
	}
	if scraped == 0 {
		t.Error("Prometheus asks none of ours by name")
	}
}
