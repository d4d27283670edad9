//go:build browser

package webtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// picturesDir is the variable that names the directory for the pictures of the docs.
const picturesDir = "UWF_WEBTEST_PICTURES"

// TestPictures takes pictures of each page, light and dark, wide and narrow, in .tmp/web, and checks them with
// axe-core. `make web-pictures` also writes the few that README and the docs show.
func TestPictures(t *testing.T) {
	w := newWorld(t)
	all := newOffice(w)
	w.serve("--actions")
	w.open("thread/" + all.fix)
	step := evaluate[string](w, `document.querySelector('#s3 a[href*="/step/"]').pathname`)
	flow := evaluate[string](w, `document.querySelector('#part-about a[href*="/workflow/"]').pathname`)
	pages := []struct{ name, path string }{
		{"inbox", ""}, {"threads", "threads"}, {"workflows", "workflows"}, {"workflow", flow[strings.Index(flow, "workflow/"):]},
		{"start", "start?workflow=changelog"}, {"decision", "thread/" + all.announce}, {"thread", "thread/" + all.fix},
		{"failed", "thread/" + all.failed}, {"fan-out", "thread/" + all.checks}, {"question", "thread/" + all.question},
		{"refused", "thread/" + all.refused}, {"running", "thread/" + all.runs}, {"step", step[strings.Index(step, "thread/"):]},
		{"compare", "diff?a=" + all.plan + "&b=" + all.fork}, {"costs", "stats?by=workflow&by=role"},
	}
	for _, width := range []int64{1280, 390} {
		for _, dark := range []bool{false, true} {
			w.screen(width, dark)
			for _, p := range pages {
				w.open(p.path)
				w.narrow(p.name)
				w.accessible(p.name)
				w.hideHome()
				w.picture(fmt.Sprintf("page-%s-%d-%s", p.name, width, map[bool]string{true: "dark", false: "light"}[dark]))
			}
		}
	}
	w.quiet()
	dir := os.Getenv(picturesDir)
	if dir == "" {
		dir = w.pictures
	}
	for _, p := range []struct {
		name, path    string
		dark          bool
		width, height int64
	}{
		{"inbox", "", false, 1200, 900}, {"thread", "thread/" + all.fix, true, 1200, 900}, {"start", "start?workflow=changelog", false, 1200, 640},
		{"phone", "thread/" + all.newer, false, 390, 700},
		{"costs", "stats?by=workflow&by=role", true, 1200, 760},
	} {
		w.screen(p.width, p.dark)
		w.do(chromedp.EmulateViewport(p.width, p.height))
		_, err := chromedp.Call(w.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Berlin"})
		require.NoError(t, err)
		w.open(p.path)
		if p.name == "inbox" { // the first cards show less of what a card can have
			evaluate[bool](w, fmt.Sprintf(`(() => { const card = document.querySelector('#part-waiting article h3 a[href$="/thread/%s"]').closest('article'); while (card.previousElementSibling?.matches('article')) card.previousElementSibling.remove(); return true })()`, all.ship))
		}
		w.hideHome()
		data, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		require.Less(t, len(data), 200<<10, "pictures of the docs are small")
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("web-%s.png", p.name)), data, 0o644))
	}
	w.quiet()
}

// hideHome replaces the path of the test's home on the page.
func (w *world) hideHome() {
	w.Helper()
	evaluate[bool](w, fmt.Sprintf(`(() => { const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); while (all.nextNode()) all.currentNode.data = all.currentNode.data.replaceAll(%q, "~/stats"); return true })()`, w.home))
}
