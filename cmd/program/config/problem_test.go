package config

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// All problems are reported at once, in this form.
func TestAllProblemsAtOnce(t *testing.T) {
	in := input{
		file: `listen: 8420
store: embedded::memory:x
scheduler:
  retry-min: 10s
  pol-interval: 1s
  window: "16"
  window: 17
watcher: {poll-interval: 1}
chains:
  - id: 1
    endpoints: [http://a, ftp://b]
  - id: 0x1
    endpoint: http://a
api:
retention: 24h
`,
		env:   []string{"WATCHTOWER_LISTN=x", "WATCHTOWER_OWNER_LEASE_RENEW=2s", "WATCHTOWER_DATABASE=", "HOME=/"},
		flags: []string{"--api-max-batch=0", "--grouping=al", "--log-level=info", "--log-level=warn"},
	}
	want := `configuration: 17 problems
  env WATCHTOWER_LISTN: is not a setting; the nearest is WATCHTOWER_LISTEN
  w.yaml:1: listen: must be text on one line; in quotes if it looks like something else
  w.yaml:2: store: is neither embedded:DIR nor embedded::memory:
  w.yaml:5:3: scheduler: unknown setting "pol-interval"; the nearest is poll-interval
    5 |   pol-interval: …
      |   ^^^^^^^^^^^^
  w.yaml:6: scheduler.window: must be a decimal number, without quotes
  w.yaml:7: scheduler: window is already in line 6
  w.yaml:8: watcher.poll-interval: "1" is not a duration such as 250ms, 3s or 24h
  w.yaml:12: chains[1].id: the chain id must be a decimal number from 1 to 9223372036854775807
  w.yaml:13:5: chains[1]: unknown setting "endpoint"; the nearest is endpoints
    13 |     endpoint: …
       |     ^^^^^^^^
  w.yaml:10: chains: chain 1: endpoint 2: must be a URL that begins with http:// or https://
  w.yaml:15: retention: must be names with values, each on a line: name: value
  env WATCHTOWER_DATABASE: database: has no value; leave it out to get the default
  flag --grouping: grouping: "al" is not one of explicit, all
  flag --api-max-batch: api.max-batch: 0 is not within 1 to 10000
  flag --log-level: is there twice
  w.yaml:4: scheduler.retry-min: 10s must be at most scheduler.retry-max, which is 5s (default)
  env WATCHTOWER_OWNER_LEASE_RENEW: owner.lease-renew: 2s must be at most a third of owner.lease-ttl, which is 3s (default)`
	c, settings, err := in.resolve(t)
	if err == nil {
		t.Fatal("no problem")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("%s\n%s", diff, err)
	}
	if diff := cmp.Diff(Config{}, c); diff != "" || settings != nil {
		t.Errorf("a refused configuration has values: %s %v", diff, settings)
	}
}

func TestRefusedFiles(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"syntax", "listen: a: b\n", "w.yaml:1:9: not YAML: mapping value is not allowed in this context\n    1 | listen: …"},
		{"unquoted memory", "\nstore: embedded::memory:\n", "w.yaml:2:8: not YAML"},
		{"unclosed", "chains: [\n", "not YAML"},
		{"tab", "scheduler:\n\twindow: 3\n", "w.yaml:2"},
		{"list", "- listen\n", "w.yaml:1: must be names with values"},
		{"word", "listen\n", "w.yaml:1: must be names with values"},
		{"null", "~\n", "w.yaml:1: must be names with values"},
		{"no value", "listen:\n", "w.yaml:1: listen: has no value"},
		{"empty text", "listen: ''\n", "w.yaml:1: listen: has no value"},
		{"two documents", "listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2\n", "w.yaml:3: a second document"},
		{"directive", "%YAML 1.2\n---\nlisten: 127.0.0.1:1\n", "w.yaml:"},
		{"a URL within braces", "chains: [{id: 1, endpoints: [http://user:secret@127.0.0.1:1]}]\n", "chains[0].endpoints[0]: a URL is read as the name of a setting: put it into quotes"},
		{"wrong case", "Listen: 127.0.0.1:1\n", `unknown setting "Listen"; the nearest is listen`},
		{"dotted", "scheduler.window: 3\n", `unknown setting "scheduler.window"`},
		{"deeper", "listen: {on: x}\n", "w.yaml:1: listen: must be text"},
		{"byte order mark", "\ufefflisten: 127.0.0.1:1\n", "unknown setting"},
		{"not UTF-8", "listen: \xff\n", "w.yaml is not UTF-8"},
		{"too large", "#" + strings.Repeat("x", fileMax), "more than 262144 bytes"},
		{"alias", "listen: &a 127.0.0.1:1\nmetrics-listen: *a\n", "w.yaml:2: metrics-listen: anchors, aliases and tags are not supported"},
		{"tag", "listen: !!str 127.0.0.1:1\n", "w.yaml:1: listen: anchors"},
		{"merge", "<<: {listen: x}\n", "w.yaml:1: a name must be plain text"},
		{"number as a name", "1: x\n", "w.yaml:1: a name must be plain text"},
		{"block text", "listen: |\n  127.0.0.1:1\n", "w.yaml:1: listen: must be text on one line"},
		{"octal", "api: {max-batch: 010}\n", `w.yaml:1: api.max-batch: "010" is not a decimal number`},
		{"hex", "api: {max-batch: 0x10}\n", "is not a decimal number"},
		{"grouped digits", "api: {max-batch: 1_000}\n", "is not a decimal number"},
		{"fraction", "api: {max-batch: 1.0}\n", "must be a decimal number"},
		{"number for a toggle", "watcher: {use-websocket: 1}\n", "w.yaml:1: watcher.use-websocket: must be true or false"},
		{"yes", "watcher: {use-websocket: yes}\n", "w.yaml:1: watcher.use-websocket: must be true or false"},
		{"fraction of a duration", "shutdown-grace: 1.5\n", "shutdown-grace: must be a duration"},
		{"days", "retention: {bytes: 7d}\n", `retention.bytes: "7d" is not a duration`},
		{"negative", "retention: {bytes: -1h}\n", "retention.bytes: -1h is not within 0s to 87600h"},
		{"list where none is", "listen: [a]\n", "listen: must be text"},
		{"the file in the file", "config: other.yaml\n", `unknown setting "config"`},
		{"chain without id", "chains: [{endpoints: [http://a]}]\n", "w.yaml:1: chains[0]: has no id"},
		{"chain without endpoints", "chains: [{id: 1}]\n", "chains: chain 1: no endpoint"},
		{"chain without endpoint", "chains: [{id: 1, endpoints: []}]\n", "chains: chain 1: no endpoint"},
		{"endpoints not a list", "chains: [{id: 1, endpoints: http://a}]\n", "chains[0].endpoints: must be a list"},
		{"endpoint null", "chains: [{id: 1, endpoints: [~]}]\n", "chains[0].endpoints[0]: has no value"},
		{"endpoint not text", "chains: [{id: 1, endpoints: [5]}]\n", "chains[0].endpoints[0]: must be text"},
		{"endpoint without URL", "chains: [{id: 1, endpoints: [{name: a}]}]\n", "endpoint 1: must be a URL"},
		{"endpoint twice", "chains: [{id: 1, endpoints: [http://a, http://b, http://a]}]\n", "endpoint 3 is endpoint 1 again"},
		{"endpoint name twice", "chains: [{id: 1, endpoints: [{url: http://a, name: n}, {url: http://b, name: n}]}]\n", "endpoint 2 is endpoint 1 again"},
		{"endpoint name", "chains: [{id: 1, endpoints: [{url: http://a, name: a b}]}]\n", "endpoint 1: the name must be"},
		{"websocket scheme", "chains: [{id: 1, endpoints: [{url: http://a, websocket: http://a}]}]\n", "endpoint 1: websocket must be a URL that begins with ws:// or wss://"},
		{"chain name", "chains: [{id: 1, name: 'a\"b', endpoints: [http://a]}]\n", "chain 1: the name must be"},
		{"chain twice", "chains:\n  - {id: 1, endpoints: [http://a]}\n  - {id: 1, endpoints: [http://b]}\n", "w.yaml:3: chains: chain 1 is there twice"},
		{"id as text", "chains: [{id: '1', endpoints: [http://a]}]\n", "chains[0].id: must be a decimal number"},
		{"id null", "chains: [{id: , endpoints: [http://a]}]\n", "chains[0].id: has no value"},
		{"id too large", "chains: [{id: 9223372036854775808, endpoints: [http://a]}]\n", "from 1 to 9223372036854775807"},
		{"confirmations", "chains: [{id: 1, confirmations: 10001, endpoints: [http://a]}]\n", "chains[0].confirmations: confirmations must be a decimal number from 0 to 10000"},
		{"chain is text", "chains: [x]\n", "chains[0]: must be names with values"},
	} {
		t.Run(test.name, func(t *testing.T) { refused(t, input{file: test.file}, test.want) })
	}
}

func TestRefusedValues(t *testing.T) {
	for _, test := range []struct{ variable, want string }{
		{"STORE=", "store: has no value"},
		{"STORE=embedded:", "names no folder"},
		{"STORE=embedded://x", "is not a URL: write embedded:DIR"},
		{"STORE=embedded:a\x00b", "has a NUL"},
		{"STORE=./data", "must be embedded:DIR, embedded::memory:, postgres://… or esdb://…"},
		{"STORE=mysql://h/db", "must be embedded:DIR"},
		{"STORE=esdb://h:2113", "database: must be postgres://… beside a store that is an EventStoreDB"},
		{"STORE=esdb://", "is not an esdb:// URL with a host"},
		{"STORE=esdb://u:p@?tls=false", "is not an esdb:// URL with a host"},
		{"STORE=kurrentdb+discover://h:2113", "must begin with esdb://"},
		{"STORE=postgres://", "is not a postgres:// URL with a host"},
		{"STORE=postgres:///db", "is not a postgres:// URL with a host"},
		{"STORE=postgres://u:p%zz@h/db", "is not a postgres:// URL with a host"},
		{"DATABASE=esdb://h", "cannot be an EventStoreDB"},
		{"VAULT_KEY_FILE=" + strings.Repeat("ab", 32), "is a key, but must be the path"},
		{"VAULT_KEY_FILE=0x" + strings.Repeat("AB", 32), "is a key, but must be the path"},
		{"LISTEN=8420", "is not host:port"},
		{"LISTEN=:http", "is not host:port"},
		{"LISTEN=:65536", "is not host:port"},
		{"LISTEN=a b:1", "is not host:port"},
		{"LISTEN=::1:80", "is not host:port"},
		{"METRICS_LISTEN=127.0.0.1:8420", "metrics-listen: 127.0.0.1:8420 is taken by listen, 127.0.0.1:8420 (default)"},
		{"METRICS_LISTEN=:8420", "is taken by listen"},
		{"METRICS_LISTEN=[::]:08420", "is taken by listen"},
		{"METRICS_LISTEN=localhost:8420", "is taken by listen"},
		{"CHAINS=http://a", "entry 1 must be an id, =, and URLs"},
		{"CHAINS=1=http://a;", "entry 2 must be an id"},
		{"CHAINS=0=http://a", "entry 1: the chain id must be"},
		{"CHAINS=01=http://a", "entry 1: the chain id must be"},
		{"CHAINS=0x1=http://a", "entry 1: the chain id must be"},
		{"CHAINS=-1=http://a", "entry 1: the chain id must be"},
		{"CHAINS=9223372036854775808=http://a", "entry 1: the chain id must be"},
		{"CHAINS=1=", "chain 1: endpoint 1: must be a URL"},
		{"CHAINS=1=http://a,", "chain 1: endpoint 2: must be a URL"},
		{"CHAINS=1=http://", "chain 1: endpoint 1: has no host"},
		{"CHAINS=1=http://:80", "chain 1: endpoint 1: has no host"},
		{"CHAINS=1=http://a:65536", "chain 1: endpoint 1: has no port"},
		{"CHAINS=1=http://a:0", "chain 1: endpoint 1: has no port"},
		{"CHAINS=1=http://a#b", "chain 1: endpoint 1: has a fragment"},
		{"CHAINS=1=localhost:8545", "chain 1: endpoint 1: must be a URL"},
		{"CHAINS=1=ws://a", "chain 1: endpoint 1: must be a URL that begins with http:// or https://"},
		{"CHAINS=1=http://a,http://a", "chain 1: endpoint 2 is endpoint 1 again"},
		{"CHAINS=1=http://a;1=http://b", "chain 1 is there twice"},
		{"CHAINS=1=http://a" + strings.Repeat(",http://b", endpointsMax), "33 endpoints are more than 32"},
		{"CHAINS=1=http://a" + strings.Repeat(";1=http://a", chainsMax), "65 chains are more than 64"},
		{"CONFIRMATIONS=1", "entry 1 must be an id"},
		{"CONFIRMATIONS=x=1", "entry 1: the chain id must be"},
		{"CONFIRMATIONS=1=-1", "chain 1: confirmations must be"},
		{"CONFIRMATIONS=1=10001", "chain 1: confirmations must be"},
		{"CONFIRMATIONS=1=1;1=2", "chain 1 is there twice"},
		{"CONFIRMATIONS=1=1", "confirmations: chain 1 is not among the chains"},
		{"WATCHER_USE_WEBSOCKET=TRUE", `"TRUE" is neither true nor false`},
		{"SCHEDULER_RETRY_MAX=100ms", "scheduler.retry-min: 250ms must be at most scheduler.retry-max, which is 100ms (env WATCHTOWER_SCHEDULER_RETRY_MAX)"},
		{"SCHEDULER_REBROADCAST_MIN=16s", "scheduler.rebroadcast-min: 16s must be at most"},
		{"SCHEDULER_LEASE_TTL=2s", "broadcaster.timeout: 2s must be less than nine tenths of scheduler.lease-ttl"},
		{"BROADCASTER_TIMEOUT=2700ms", "broadcaster.timeout: 2.7s must be less than nine tenths of scheduler.lease-ttl, which is 3s (default)"},
		{"SCHEDULER_LEASE_TTL=21s", "scheduler.lease-ttl: 21s must be at most shutdown-grace"},
		{"OWNER_LEASE_TTL=2900ms", "owner.lease-renew: 1s must be at most a third of owner.lease-ttl"},
		{"API_WRITE_TIMEOUT=14s", "api.read-timeout: 15s must be at most api.write-timeout"},
		{"TRUSTED_PROXIES=proxy", `"proxy" is neither an address nor a network`},
		{"TRUSTED_PROXIES=10.0.0.1,", `"" is neither an address nor a network`},
		{"TRUSTED_PROXIES=10.0.0.1/8", "10.0.0.1/8 has bits beyond its length; the network is 10.0.0.0/8"},
		{"TRUSTED_PROXIES=fe80::1%eth0", "is neither an address nor a network"},
		{"TRUSTED_PROXIES=" + strings.Repeat("10.0.0.1,", networksMax) + "::1", "has 257 networks, more than 256"},
		{"CONFIG=gone.yaml", "env WATCHTOWER_CONFIG: read the configuration file: file does not exist"},
		{"CONFIG=", "env WATCHTOWER_CONFIG: names no file"},
		{"STROE=embedded:x", "env WATCHTOWER_STROE: is not a setting; the nearest is WATCHTOWER_STORE"},
		{"CHAIN_ID=1", "is not a setting; the nearest is WATCHTOWER_CHAINS"},
		{"PORT=8420", "env WATCHTOWER_PORT: is not a setting"},
		{"SERVICE_NAME=x", "env WATCHTOWER_SERVICE_NAME: is not a setting"},
		{strings.Repeat("X", 100_000) + "=1", "is not a setting"},
	} {
		name, _, _ := strings.Cut(test.variable, "=")
		t.Run(name[:min(len(name), 30)], func(t *testing.T) {
			refused(t, input{env: []string{"WATCHTOWER_" + test.variable}}, test.want)
		})
	}
	refused(t, input{env: []string{"WATCHTOWER_STORE=embedded::memory:", "WATCHTOWER_DATABASE=embedded:x"}},
		"env WATCHTOWER_DATABASE: database: must not outlive the store")
	refused(t, input{env: []string{"WATCHTOWER_RATE_ADDRESS=1", "WATCHTOWER_RATE_ADDRESS_BURST=999"}},
		"api.max-batch: 1000 must be at most rate.address-burst, which is 999")
	refused(t, input{flags: []string{"--config=a", "--config=b"}}, "flag --config: is there twice")
	refused(t, input{flags: []string{"--config=gone.yaml"}}, os.ErrNotExist.Error())
}

// refused requires exactly one problem, which contains a text.
func refused(t *testing.T, in input, want string) {
	t.Helper()
	_, _, err := in.resolve(t)
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("taken: %+v", in)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%v\ndoes not say %q", err, want)
	}
}

func TestManyProblems(t *testing.T) {
	_, _, err := input{file: strings.Repeat("x: 1\n", 150)}.resolve(t)
	if err == nil || !strings.HasPrefix(err.Error(), "configuration: 150 problems\n") || !strings.HasSuffix(err.Error(), "\n  and 50 more") {
		t.Error(err)
	}
}

// A refused value is not checked against other settings: one mistake is one problem.
func TestOneMistakeIsOneProblem(t *testing.T) {
	for _, in := range []input{
		{env: []string{"WATCHTOWER_SCHEDULER_RETRY_MIN=100h"}},
		{env: []string{"WATCHTOWER_STORE=embedded::memory:", "WATCHTOWER_DATABASE=x"}},
		{env: []string{"WATCHTOWER_CHAINS=x", "WATCHTOWER_CONFIRMATIONS=1=1"}},
		{file: "chains: [{id: 1}]\nconfirmations: 1=1\n"},
		{file: "chains: [{id: 1, endpoints: x}]\nconfirmations: 1=1\n"},
		{file: "owner: {lease-ttl: x}\n", env: []string{"WATCHTOWER_OWNER_LEASE_RENEW=20s"}},
		{file: "listen: x\n", env: []string{"WATCHTOWER_LISTEN=127.0.0.1:1"}}, // overridden, and still wrong
	} {
		_, _, err := in.resolve(t)
		var problems Problems
		if !errors.As(err, &problems) || len(problems) != 1 {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

// A value at the limit that another setting allows is accepted.
func TestLimitsBetweenSettings(t *testing.T) {
	input{env: []string{
		"WATCHTOWER_BROADCASTER_TIMEOUT=2699ms", "WATCHTOWER_SHUTDOWN_GRACE=3s", "WATCHTOWER_API_READ_TIMEOUT=30s",
		"WATCHTOWER_SCHEDULER_RETRY_MIN=5s", "WATCHTOWER_SCHEDULER_REBROADCAST_MIN=15s", "WATCHTOWER_OWNER_LEASE_RENEW=1s",
	}}.mustResolve(t)
}

func TestForeignVariables(t *testing.T) {
	input{env: []string{
		"WATCHTOWER_TEST_POSTGRES=x", "WATCHTOWER_CRASH_POINT=x", "WATCHTOWERX=1", "watchtower_listen=x", "=C:=x", "junk",
		"WATCHTOWER_SERVICE_HOST=10.0.0.1", "WATCHTOWER_SERVICE_PORT=8420", "WATCHTOWER_SERVICE_PORT_API=8420",
		"WATCHTOWER_PORT=tcp://10.0.0.1:8420", "WATCHTOWER_PORT_8420_TCP=tcp://10.0.0.1:8420",
		"WATCHTOWER_PORT_8420_TCP_PROTO=tcp", "WATCHTOWER_PORT_8420_TCP_ADDR=10.0.0.1", "WATCHTOWER_PORT_8420_TCP_PORT=8420",
		"WATCHTOWER_METRICS_SERVICE_HOST=10.0.0.2", "WATCHTOWER_METRICS_PORT=tcp://10.0.0.2:1",
	}}.mustResolve(t)
}
