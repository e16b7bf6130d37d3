package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/projections/relay/intents"
)

// GET of one intent shows the reason for its wait, with all fields in the contract, if the
// reason is known. If it cannot be found out, the intent is shown without it.
func TestWaitsForIsShown(t *testing.T) {
	engines(t, func(t *testing.T, open func(...func(*Config)) *stack) {
		var known *WaitsFor
		var trouble error
		s := open(func(c *Config) {
			c.WaitsFor = func(_ context.Context, row intents.Row) (*WaitsFor, error) {
				if row.Position == 0 || row.Request().Key != "held" {
					t.Errorf("it is asked about %+v", row)
				}
				return known, trouble
			}
		})
		at := "/v1/intents/" + into[shown](t, s.do(http.MethodPost, "/v1/intents", fmt.Sprintf(plain, "held")), http.StatusAccepted).ID.String()
		get := func() (got shown) {
			return into[shown](t, s.do(http.MethodGet, at, ""), http.StatusOK)
		}
		if got := get(); got.WaitingFor != nil || got.WaitingSince != 0 {
			t.Errorf("it waits for %+v", got.WaitingFor)
		}
		c, err := contract()
		check(t, err)
		var codes []string
		for _, code := range c.doc.Components.Schemas["WaitingFor"].Value.Properties["code"].Value.Enum {
			codes = append(codes, code.(string))
		}
		told := []string{}
		for _, code := range WaitCodes() {
			known = &WaitsFor{Code: code, Detail: "because", Since: epoch.Add(time.Minute)}
			got := get()
			if d := cmp.Diff(&waitingFor{code, "because"}, got.WaitingFor); d != "" || got.WaitingSince != epoch.Add(time.Minute).Unix() {
				t.Errorf("since %d: %s", got.WaitingSince, d)
			}
			told = append(told, string(code))
		}
		slices.Sort(codes)
		slices.Sort(told)
		if d := cmp.Diff(codes, told); d != "" {
			t.Errorf("openapi.yaml (-) and what is told (+) differ:\n%s", d)
		}
		known, trouble = nil, errors.New("the disk is away")
		if got := get(); got.WaitingFor != nil || !strings.Contains(s.log.String(), "the disk is away") {
			t.Errorf("it waits for %+v, and the log does not say what the trouble is", got.WaitingFor)
		}
	})
}
