package remote

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// listenVar is the variable with the setting listen, from which a container's health check derives the
// address of the service beside it.
const listenVar = "WATCHTOWER_LISTEN"

// probeTime is how long a health check waits by default. Container engines allow 30 s by default.
const probeTime = 5 * time.Second

// HealthCheck is the command "healthcheck".
func HealthCheck(at Listener, program string) *cobra.Command {
	var given string
	var live bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "healthcheck", Short: "Report whether the service beside it is ready, for containers", Args: cobra.NoArgs,
		Long: "Ask the service in the same container whether it is ready (/readyz), or with --live, whether it\n" +
			"serves requests (/livez). The exit status is 0 or 1, as HEALTHCHECK of a Dockerfile has it. It needs\n" +
			"no configuration and no API key: the address is the port of " + listenVar + " on this machine, or\n" +
			at.Standard + ".",
		Example: "  " + program + " healthcheck\n  " + program + " healthcheck --url http://127.0.0.1:9420 --live",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			target, err := probed(cmp.Or(given, beside(os.Getenv(listenVar)), at.Standard), live)
			if err == nil {
				err = probe(ctx, target)
			}
			return terminal.With(terminal.Failed, err)
		},
	}
	cmd.Flags().StringVar(&given, "url", "", "the `URL` of "+at.Name+"; with a path, this path must answer with a status from 200 to 299")
	cmd.Flags().BoolVar(&live, "live", false, "ask whether it serves requests, not whether it is ready")
	cmd.Flags().DurationVar(&timeout, "timeout", probeTime, "how long the answer may take")
	terminal.MisuseIs(cmd, terminal.Failed) // a container engine reserves 2
	return cmd
}

// beside is the URL of a service that listens on an address; empty without an address.
func beside(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// probed is the URL to ask.
func probed(text string, live bool) (*url.URL, error) {
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, fmt.Errorf("%q is not a URL that begins with http:// or https://", text)
	}
	if at.Path == "" || at.Path == "/" {
		at.Path = "/readyz"
		if live {
			at.Path = "/livez"
		}
	}
	return at, nil
}

// probe returns an error unless the URL answers with success.
func probe(ctx context.Context, at *url.URL) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // it is of no more use
	if res.StatusCode < 200 || res.StatusCode > 299 {
		const most = 200
		said, _ := io.ReadAll(io.LimitReader(res.Body, most)) // for people
		return fmt.Errorf("%s answered %s: %s", at, res.Status, strings.TrimSpace(terminal.Plain(string(said))))
	}
	return nil
}
