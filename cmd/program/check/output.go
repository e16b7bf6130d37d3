package check

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// nagios writes a report as a plugin of Nagios, Icinga or Sensu does: one line with the state and the
// performance data, then a line for each check that is not well. Source: Monitoring Plugins Development
// Guidelines, "Plugin Output for Nagios".
func nagios(to io.Writer, program string, r Report) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s: %s", strings.ToUpper(program), r.State, summary(r))
	if data := performance(r); data != "" {
		text.WriteString(" | " + data)
	}
	text.WriteByte('\n')
	for _, one := range r.Results {
		if one.State != OK {
			fmt.Fprintf(&text, "%s %s: %s\n", one.State, one.Check, line(one.Says))
		}
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// line is text in one line, without the sign that begins performance data.
func line(text string) string {
	return terminal.Plain(strings.NewReplacer("\n", " ", "|", "/").Replace(text))
}

// summary is the most urgent finding, or the number of checks.
func summary(r Report) string {
	if r.State == OK {
		return count(float64(len(r.Results)), "checks are ok")
	}
	found := 0
	for _, one := range r.Results {
		if one.State != OK {
			found++
		}
	}
	if found == 1 {
		return line(r.Results[0].Says)
	}
	return fmt.Sprintf("%s; and %d more", line(r.Results[0].Says), found-1)
}

// performance is the performance data: 'name'=value[unit];warning;critical.
func performance(r Report) string {
	var all []string
	bound := func(n *float64) string {
		if n == nil {
			return ""
		}
		return number(*n)
	}
	for _, one := range r.Results {
		if one.Value == nil {
			continue
		}
		unit := ""
		if one.Unit == "s" {
			unit = "s"
		}
		name := strings.NewReplacer("'", "", "=", "").Replace(one.Name())
		all = append(all, strings.TrimRight(fmt.Sprintf("'%s'=%s%s;%s;%s", name, number(*one.Value), unit, bound(one.Warning), bound(one.Critical)), ";"))
	}
	return strings.Join(all, " ")
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// prometheus writes a report in Prometheus's text format, for the textfile collector of node_exporter.
func prometheus(to io.Writer, r Report) error {
	var text strings.Builder
	text.WriteString("# HELP watchtower_check_state State of a check: 0 ok, 1 warning, 2 critical, 3 unknown.\n# TYPE watchtower_check_state gauge\n")
	for _, one := range r.Results {
		fmt.Fprintf(&text, "watchtower_check_state%s %d\n", one.labels(), one.State)
	}
	text.WriteString("# HELP watchtower_check_value The number that a check has compared.\n# TYPE watchtower_check_value gauge\n")
	for _, one := range r.Results {
		if one.Value != nil {
			fmt.Fprintf(&text, "watchtower_check_value%s %s\n", one.labels(), number(*one.Value))
		}
	}
	_, err := io.WriteString(to, text.String())
	return err
}

func (r Result) labels() string {
	parts := []string{"check=" + quoted(r.Check)}
	for _, name := range r.names() {
		parts = append(parts, name+"="+quoted(r.Labels[name]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func tell(to io.Writer, r Report) error {
	var rows [][]string
	for _, one := range r.Results {
		rows = append(rows, []string{one.State.String(), one.Check, one.Says})
	}
	return terminal.Table(to, "STATE\tCHECK\tSAYS", rows)
}
