package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// browser is a page in Chromium, driven as a person would.
type browser struct {
	*testing.T
	ctx  context.Context
	end  func() // closes the browser; it may be called again
	base string
	axe  string

	mu       sync.Mutex
	troubles []string
}

// openBrowser opens Chromium. What a page says on its console, requests to other origins and violations of its
// policy are troubles, which fail the test.
func openBrowser(t *testing.T, base string) *browser {
	t.Helper()
	b := &browser{T: t, base: base}
	axe, err := os.ReadFile(filepath.Join(testenv.Need(t, testenv.AxeVar), "node_modules", "axe-core", "axe.min.js"))
	check(t, err)
	b.axe = string(axe)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 900), chromedp.Flag("disable-dev-shm-usage", true))
	if program := os.Getenv(testenv.ChromiumVar); program != "" {
		options = append(options, chromedp.ExecPath(program))
	}
	allocated, endAll := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, end := chromedp.NewContext(allocated, chromedp.WithErrorf(func(string, ...any) {})) // it does not know every event of the browser
	b.ctx = ctx
	chromedp.ListenTarget(ctx, b.heard)
	b.end = func() { end(); endAll() }
	t.Cleanup(func() {
		b.end()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, trouble := range b.troubles {
			t.Errorf("the browser says: %s", trouble)
		}
	})
	b.run(network.Enable(), log.Enable())
	return b
}

// heard records what must not happen.
func (b *browser) heard(event any) {
	var trouble string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		trouble = "exception: " + e.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError && !strings.Contains(e.Entry.Text, "status of 4") {
			trouble = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if asked, err := url.Parse(e.Request.URL); err == nil && asked.Scheme != "data" && asked.Scheme != "blob" && !strings.HasPrefix(e.Request.URL, b.base) && e.Request.URL != "about:blank" {
			trouble = "a request to " + e.Request.URL
		}
	}
	if trouble != "" {
		b.mu.Lock()
		b.troubles = append(b.troubles, trouble)
		b.mu.Unlock()
	}
}

// patienceOfPage bounds each thing that a person waits for.
const patienceOfPage = time.Minute

func (b *browser) run(actions ...chromedp.Action) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patienceOfPage)
	// The browser lives as long as the context of its first action.
	if chromedp.FromContext(b.ctx).Target == nil {
		cancel()
		ctx, cancel = b.ctx, func() {}
	}
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		var shown string
		_ = chromedp.Run(b.ctx, chromedp.Text("body", &shown, chromedp.ByQuery))
		b.Fatalf("%v; the page shows:\n%s", err, shown)
	}
}

// visit goes to a page of the console and waits for a text on it.
func (b *browser) visit(page, text string) {
	b.Helper()
	b.run(chromedp.Navigate(b.base + "/console/#" + page))
	b.shows(text)
}

// shows waits until the page shows a text.
func (b *browser) shows(text string) {
	b.Helper()
	quoted, err := json.Marshal(text)
	check(b.T, err)
	b.run(chromedp.Poll(fmt.Sprintf("document.body.innerText.includes(%s)", quoted), nil, chromedp.WithPollingInterval(50*time.Millisecond)))
}

// press clicks the button with a text: the last one, which is the one in front.
func (b *browser) press(text string) {
	b.Helper()
	quoted, err := json.Marshal(text)
	check(b.T, err)
	b.run(chromedp.Poll(fmt.Sprintf("[...document.querySelectorAll('button')].some(b => b.innerText === %s)", quoted), nil, chromedp.WithPollingInterval(50*time.Millisecond)))
	b.run(chromedp.Evaluate(fmt.Sprintf("[...document.querySelectorAll('button')].findLast(b => b.innerText === %s).click()", quoted), nil))
}

// order gives an order with a reason.
func (b *browser) order(button, reason string) {
	b.Helper()
	b.press(button)
	if reason != "" {
		b.run(chromedp.SendKeys("dialog input", reason, chromedp.ByQuery))
	} else {
		b.run(chromedp.WaitVisible("dialog form", chromedp.ByQuery))
	}
	b.run(chromedp.Evaluate("document.querySelector('dialog form').requestSubmit()", nil))
	b.run(chromedp.WaitNotPresent("dialog[open]", chromedp.ByQuery))
}

// accessible fails the test for each thing that axe finds.
func (b *browser) accessible(page string) {
	b.Helper()
	var found []struct {
		ID, Help string
		Nodes    []struct{ HTML string }
	}
	b.run(
		chromedp.Evaluate(b.axe+"; undefined", nil),
		chromedp.Evaluate("axe.run(document, { resultTypes: ['violations'] }).then(r => r.violations.map(v => ({ id: v.id, help: v.help, nodes: v.nodes.map(n => ({ html: n.html })) })))",
			&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }),
	)
	for _, f := range found {
		b.Errorf("%s: axe finds %s, %s: %s", page, f.ID, f.Help, f.Nodes[0].HTML)
	}
}

// narrow makes the window as wide as a small telephone, and fails if the page is wider.
func (b *browser) narrow(page string) {
	b.Helper()
	var wide int
	b.run(chromedp.EmulateViewport(360, 740), chromedp.Evaluate("document.documentElement.scrollWidth", &wide))
	if wide > 360 {
		b.Errorf("%s is %d pixels wide on a screen of 360", page, wide)
	}
	b.run(chromedp.EmulateViewport(1280, 900))
}

// picture keeps a picture of the page in the folder WATCHTOWER_TEST_PICTURES, if there is one. The pictures of
// docs/pictures are made so.
func (b *browser) picture(name string) {
	b.Helper()
	folder := os.Getenv("WATCHTOWER_TEST_PICTURES")
	if folder == "" {
		return
	}
	var png []byte
	b.run(chromedp.CaptureScreenshot(&png))
	check(b.T, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
}
