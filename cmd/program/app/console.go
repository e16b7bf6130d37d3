package app

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/tempo-watchtower/watchtower/api/console"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
)

// withConsole serves the console beside the operators' routes, if the settings say so.
func (a *App) withConsole(c config.Config, b Build, internal rest.Config, api, operators http.Handler) http.Handler {
	if !c.Console {
		return operators
	}
	parts := map[string]http.Handler{"delivery": api, "operate": operators}
	if a.extension.Server != nil {
		parts["relay"] = a.extension.Server.Handler
	}
	internal.Access = rest.Access{Keys: a.keyring.State, Always: internal.Admin.Exposed}
	pages := console.New(console.Config{
		API: internal, Keys: internal.Admin.Keys, Secret: a.Ports.Master.Derive("console session"), Random: a.Ports.Random, Now: a.Ports.Now,
		Parts:   parts,
		Program: console.Program{Name: cmp.Or(a.extension.Program, "watchtower"), Version: b.Version, Build: b.GitSHA},
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == console.Path || strings.HasPrefix(r.URL.Path, console.Path+"/") {
			pages.ServeHTTP(w, r)
			return
		}
		operators.ServeHTTP(w, r)
	})
}
