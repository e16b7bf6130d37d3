package settings

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/notice"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
)

// Webhooks configures webhook deliveries about intents. Without secrets webhooks are off.
type Webhooks struct {
	SecretsFile  string
	Rules        webhook.Rules
	Authorities  string
	Timeout      time.Duration // of one attempt
	Slots        int           // concurrent attempts
	AtOnce       int           // concurrent attempts to one endpoint
	Poll         time.Duration
	DisableAfter time.Duration
	Keep         time.Duration // time for which delivered and dead deliveries are kept
}

// Policy is the schedule of retries, and the rule for disabling endpoints.
func (w Webhooks) Policy() notice.Policy {
	p := notice.DefaultPolicy()
	p.Concurrency, p.DisableAfter = w.AtOnce, w.DisableAfter
	return p
}

func (d *draft) webhooks() []config.Row {
	const sec, m, day = time.Second, time.Minute, 24 * time.Hour
	w := &d.Webhooks
	return []config.Row{
		paths("webhooks.secrets-file", &w.SecretsFile, "none: no webhook is called, and no intent with webhooks is accepted",
			"A file of secrets, `whsec_` and base64, one per line and the newest first, at most four. Each endpoint's own secrets are derived from them. If you add a line before the others, new secrets are derived from it; receivers must accept both secrets until you remove the old line."),
		entries("webhooks.hosts", &w.Rules.Hosts, "any host of the public Internet", "`hooks.example.com,.example.org`",
			"The only hosts that may be called. A name that begins with a dot covers all names below it.",
			func(text string) (string, error) { return text, nil }),
		entries("webhooks.ports", &w.Rules.Ports, "443", "`443,8443`", "The ports that may be called.",
			func(text string) (uint16, error) {
				n, err := strconv.ParseUint(text, 10, 16)
				if err != nil || n == 0 {
					return 0, errors.New("is not a port")
				}
				return uint16(n), nil
			}),
		entries("webhooks.networks", &w.Rules.Networks, "none", "`10.1.0.0/16,fd00:1::/32`",
			"Networks that may be called although they are not public. Link-local and multicast addresses, and the addresses where clouds keep the credentials of their machines, stay refused.",
			func(text string) (netip.Prefix, error) {
				p, err := netip.ParsePrefix(text)
				if err != nil {
					return p, errors.New("is not a network such as 10.1.0.0/16")
				}
				return p, nil
			}),
		config.ToggleRow("webhooks.development", &w.Rules.Development, false,
			"Whether this machine's own loopback may be called, also by `http` and at any port: for development only."),
		paths("webhooks.authorities", &w.Authorities, "the system's",
			"A PEM file with the certificate authorities that may have signed the endpoints' certificates."),
		config.DurationRow("webhooks.timeout", &w.Timeout, 15*sec, webhook.TimeoutMin, webhook.TimeoutMax,
			"How long one attempt may take."),
		config.NumberRow("webhooks.slots", &w.Slots, 64, 1, 1000,
			"How many attempts run at once in this process."),
		config.NumberRow("webhooks.at-once", &w.AtOnce, 4, 1, notice.ConcurrencyMax,
			"How many attempts run at once to one endpoint, in all replicas together; only one while the endpoint fails."),
		config.DurationRow("webhooks.poll", &w.Poll, sec, 10*time.Millisecond, m,
			"How often the queue of webhook deliveries is read, if nothing wakes this process."),
		config.DurationRow("webhooks.disable-after", &w.DisableAfter, notice.DefaultPolicy().DisableAfter, m, 90*day,
			"An endpoint that has only failed for this long is disabled, until somebody enables it."),
		config.DurationRow("webhooks.keep", &w.Keep, 30*day, time.Hour, 3650*day,
			"How long a webhook delivery that was delivered, or is dead, can still be listed and redelivered."),
	}
}

const entriesMax = 1000

// entries is a setting whose value is a list. Its errors show no entry that may be a key.
func entries[E any](path string, value *[]E, absent, allowed, doc string, parse func(string) (E, error)) config.Row {
	w := config.Words{Path: path, Absent: absent, Allowed: allowed, Doc: doc}
	shown := ""
	return config.TextRow(w, func(text string) error {
		*value, shown = nil, text
		for i, part := range strings.Split(text, ",") {
			e, err := parse(strings.TrimSpace(part))
			if err != nil {
				return fmt.Errorf("entry %d %w", i+1, err)
			}
			*value = append(*value, e)
		}
		if len(*value) > entriesMax {
			return fmt.Errorf("has %d entries, more than %d", len(*value), entriesMax)
		}
		return nil
	}, func() string { return shown })
}

// checkWebhooks reports conflicts between the rules.
func (s *Settings) checkWebhooks() error {
	if _, err := webhook.NewGuard(s.Webhooks.Rules); err != nil {
		return err
	}
	return s.Webhooks.Policy().Check()
}
