package main_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
)

// A person opens every page of the console in a browser, on both stores: each shows what it is for, is
// accessible, and fits a telephone. Then the person halts signing, sees why an intent waits, cancels it, and
// lets signing go on.
func TestConsolePages(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
		w := newWorld(t, kinds()[0], store)
		first := w.one(0, "first")
		w.ask(t, first, w.pool("second"), w.pool("third"))
		s := w.relayer(t)
		check(t, s.Start(w.ctx))
		w.done(t, s)
		door := w.client(t, s)
		b := openBrowser(t, s.Metrics)

		var made shown
		status, err := door.do(http.MethodGet, "/v1/intents/"+first.ID().String(), nil, &made)
		check(t, err)
		if status != http.StatusOK || len(made.Attempts) == 0 {
			t.Fatalf("%d, %+v", status, made)
		}
		signer := wallet.Dev(0).Address()
		for _, page := range []struct{ path, text, name string }{
			{"/", "The last half hour", "overview"},
			{"/transactions", "executed", "transactions"},
			{fmt.Sprintf("/transactions/%d/%s", w.id, made.Attempts[0].TxHash), "What happened", "transaction"},
			{"/intents", "completed", "intents"},
			{"/intents/" + first.ID().String(), "TxAccepted", "intent"},
			{"/groups?sender=" + signer.String(), "group", "groups"},
			{"/lanes", "active", "lanes"},
			{fmt.Sprintf("/lanes/%d/%s/0x0", w.id, signer), "Intents on it", "lane"},
			{"/signers", "serving", "keys"},
			{"/webhooks", "webhook", "webhooks"},
			{"/safeguards", "Nothing is halted.", "safeguards"},
			{"/readers", "intents", "readers"},
			{"/stream?after=0", "tx.accepted", "events"},
			{"/settings", "Log level", "settings"},
			{"/nowhere", "There is no page", "nowhere"},
		} {
			b.visit(page.path, page.text)
			b.accessible(page.path)
			b.narrow(page.path)
			b.picture("console-" + page.name)
		}
		b.actions(w, door)
		b.end() // before the service ends, which the page would notice
		check(t, s.Stop(w.ctx))
	})
}

func (b *browser) actions(w *world, door client) {
	b.Helper()
	b.visit("/safeguards", "Nothing is halted.")
	b.order("halt", "an incident")
	b.shows("Halted: deployment")
	waits := w.one(0, "waits")
	var made shown
	if status, err := door.do(http.MethodPost, "/v1/intents", wish(waits), &made); err == nil {
		b.Fatalf("an intent was answered with %d during a halt", status)
	}
	b.visit("/signers", "Halted: deployment by operator, an incident")
	b.visit("/safeguards", "an incident")
	b.order("resume", "the incident is over")
	b.shows("Nothing is halted.")

	b.visit("/signers", "serving")
	b.order("pause", "a key under suspicion") // the last row's
	b.shows("a key under suspicion")
	paused := w.one(keyOfLastRow(b), "paused")
	status, err := door.do(http.MethodPost, "/v1/intents", wish(paused), &made)
	check(b.T, err)
	if status != http.StatusAccepted {
		b.Fatalf("the intent: %d", status)
	}
	b.visit("/intents/"+paused.ID().String(), "signer-stopped")
	b.picture("console-waits")
	b.order("cancel", "not needed any more")
	b.shows("canceled")

	// By keys: the list of intents, its first row, and what it opens.
	b.visit("/", "The last half hour")
	b.run(chromedp.KeyEvent("gi"))
	b.shows("first")
	b.run(chromedp.Poll("document.querySelectorAll('tbody tr').length > 3", nil), chromedp.KeyEvent("j\r"))
	b.shows("What happened")
}

// keyOfLastRow returns which of the world's signers the last row of the page is about.
func keyOfLastRow(b *browser) int {
	b.Helper()
	var title string
	b.run(chromedp.Evaluate("[...document.querySelectorAll('tbody tr')].at(-1).querySelector('a').title", &title))
	for i := range keys {
		if wallet.Dev(i).Address().String() == title {
			return i
		}
	}
	b.Fatalf("no signer has the address %s", title)
	return 0
}
