package check

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// The formats that only this command has.
const (
	asNagios     terminal.Format = "nagios"
	asPrometheus terminal.Format = "prometheus"
)

const help = `Check a running service for a monitoring system: whether it is ready and its dependencies answer; its
endpoints; how far its readers are behind; how long the oldest due work has waited; and the conditions
of the alerts in deploy/prometheus that one look at its metrics shows.

The exit status is the state: 0 ok, 1 warning, 2 critical, 3 unknown (also after wrong usage). -o nagios
prints one line with the state and the performance data, and a line for each finding; -o prometheus is
for the textfile collector of node_exporter.

With --state, a file keeps what was seen for the next check. From the second check on, conditions about
changes are judged, too: a head that does not move, or new violations of finality.

A service with API keys shows its endpoints and readers to keys with the scope read or audit. Without
one, they are judged by the metrics. --no-metrics leaves the internal listener out.`

// checking holds the flags.
type checking struct {
	service, internal remote.Door
	output            terminal.Output
	thresholds        Thresholds
	oldest            [2]time.Duration
	timeout           time.Duration
	memory            string
	without           bool
}

// Command is the command "check" about a service, its API and its internal listener.
func Command(service, internal remote.Listener, program string) *cobra.Command {
	x := checking{service: remote.Door{Listener: service}, internal: remote.Door{Listener: internal}}
	cmd := &cobra.Command{
		Use: "check", Short: "Check a running service, for Nagios, Icinga, Prometheus and scripts", Long: help, Args: cobra.NoArgs,
		Example: "  " + program + " check\n  " + program + " check --context prod -o prometheus > /var/lib/node_exporter/" + program + ".prom",
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := x.check(cmd.Context())
			if err == nil {
				err = x.show(cmd, program, report)
			}
			if err != nil {
				return terminal.With(terminal.Status(Unknown), err)
			}
			return terminal.Quiet(terminal.Status(report.State))
		},
	}
	x.service.Connection(cmd, "url")
	x.internal.At(cmd, "metrics-url")
	x.output.Only(cmd, asNagios, asNagios, asPrometheus, terminal.AsTable, terminal.AsJSON, terminal.AsLines, terminal.AsCSV)
	flags := cmd.Flags()
	flags.BoolVar(&x.without, "no-metrics", false, "do not ask the internal listener for metrics")
	flags.StringVar(&x.memory, "state", "", "a `file` that keeps what was seen for the next check")
	flags.DurationVar(&x.timeout, "timeout", 10*time.Second, "how long the answers may take together")
	flags.Uint64Var(&x.thresholds.LagWarning, "lag-warning", 10_000, "the `events` that a reader may be behind")
	flags.Uint64Var(&x.thresholds.LagCritical, "lag-critical", 100_000, "the `events` from which on it is critical")
	flags.DurationVar(&x.oldest[0], "oldest-warning", 5*time.Second, "how long the oldest due transaction may wait")
	flags.DurationVar(&x.oldest[1], "oldest-critical", 15*time.Second, "the time from which on it is critical")
	terminal.MisuseIs(cmd, terminal.Status(Unknown))
	return cmd
}

func (x *checking) check(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	x.internal.Beside(&x.service)
	x.thresholds.OldestWarning, x.thresholds.OldestCritical = x.oldest[0].Seconds(), x.oldest[1].Seconds()
	status, _, err := x.service.Look(ctx, remote.Get("readyz"))
	if terminal.StatusOf(err) == terminal.Usage {
		return Report{}, err
	}
	results := []Result{Ready(status, err)}
	inside := false
	if err == nil {
		var found []Result
		found, inside = x.health(ctx)
		results = append(results, found...)
	}
	if !x.without {
		found, err := x.metrics(ctx, inside)
		if err != nil {
			return Report{}, err
		}
		results = append(results, found...)
	}
	return reportOf(results), nil
}

func (x *checking) health(ctx context.Context) (results []Result, inside bool) {
	_, answer, err := x.service.Look(ctx, remote.Get("health")) // a degraded service answers 503
	if err == nil {
		results, inside, err = Health(answer, x.thresholds)
	}
	if err != nil {
		return []Result{{Check: "health", State: Unknown, Says: err.Error()}}, false
	}
	return results, inside
}

// metrics judges the metrics. An error is one of the state file.
func (x *checking) metrics(ctx context.Context, inside bool) ([]Result, error) {
	status, text, err := x.internal.Look(ctx, remote.Get("metrics"))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("/metrics of %s answered %d", x.internal.Name, status)
	}
	if err != nil {
		return []Result{{Check: "metrics", State: Unknown, Says: err.Error()}}, nil
	}
	var last Memory
	if x.memory != "" {
		if last, err = Remember(x.memory); err != nil {
			return nil, err
		}
	}
	results, seen, err := Metrics(text, x.thresholds, inside, last, time.Now())
	if err != nil {
		return []Result{{Check: "metrics", State: Unknown, Says: err.Error()}}, nil
	}
	if x.memory != "" {
		return results, seen.Keep(x.memory)
	}
	return results, nil
}

func (x *checking) show(cmd *cobra.Command, program string, r Report) error {
	switch x.output.Format {
	case asNagios:
		return nagios(cmd.OutOrStdout(), program, r)
	case asPrometheus:
		return prometheus(cmd.OutOrStdout(), r)
	}
	return terminal.Tell(cmd, &x.output, "results", r, tell)
}
