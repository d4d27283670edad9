//go:build browser

package webtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// hostile tries to run scripts, load resources, hide content or break the page.
const hostile = "</pre></textarea></style></title><script>window.hacked=1</script><svg onload=\"window.hacked=1\"><img src=x onerror=window.hacked=1>" +
	"\"'><a href=\"javascript:window.hacked=1\">x</a> [x](javascript:window.hacked=1) ![y](http://127.0.0.1:1/z.png) <style>*{display:none}</style>" +
	" <base href=//127.0.0.1:1><meta http-equiv=refresh content=0;url=//127.0.0.1:1> \u202eevil\u202c \u0627\u0644\u0633\u0644\u0627\u0645 {{.Token}}"

// Text from a task, a workflow, a model, a tool or a person is shown as text on every page, and in the
// exported file.
func TestHostileTexts(t *testing.T) {
	w := newWorld(t)
	quoted := func(text string) string { data, _ := json.Marshal(text); return string(data) }
	long := strings.Repeat("w", 1<<20)
	flow := `name: evil
description: ` + quoted(hostile) + `
roles:
  act:
    description: ` + quoted(hostile) + `
    goal: ` + quoted(hostile) + `
    capabilities: []
    procedure: x
    output: x
    frontmatter: { type: object, properties: { $status: { enum: [ask] }, said: { type: string } }, required: [$status] }
  judge:
    description: ` + quoted(hostile) + `
    person: true
    frontmatter: { type: object, properties: { $status: { enum: ["yes", ` + quoted(hostile[:90]) + `] }, ` + quoted(hostile) + `: { type: string, description: ` + quoted(hostile) + ` } }, required: [$status] }
graph:
  $START: { _: { role: act, prompt: ` + quoted(strings.ReplaceAll(hostile, "{{.Token}}", "")) + ` } }
  act: { ask: { role: judge, prompt: "{{{said}}}" } }
  judge: { "yes": $END, ` + quoted(hostile[:90]) + `: act }
`
	play := fmt.Sprintf("repeat: true\nsteps:\n  - turns:\n      - { say: %s }\n      - { say: %s }\n      - { tool: %s, args: { a: %s } }\n    value: { $status: ask, said: %s }\n", quoted(hostile), quoted(long), quoted(hostile[:60]), quoted(hostile), quoted(hostile))
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "evil.yaml"), []byte(flow), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "script.yaml"), []byte(play), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "task.txt"), []byte(hostile+long), 0o600))
	id := w.uwf("run", "./evil.yaml", "-p", "@task.txt")
	other := w.uwf("run", "./evil.yaml", "-p", hostile)
	file := filepath.Join(w.home, "run.html")
	w.uwf("thread", "export", id, "--html", "-o", file)
	w.serve("--actions")
	w.open("thread/" + id)
	require.Contains(t, w.text(), "suspended", "the model has played")
	step := evaluate[string](w, `document.querySelector('#part-steps a[href*="/step/"]').pathname`)
	step = step[strings.Index(step, "thread/"):]
	flowPage := evaluate[string](w, `document.querySelector('.about a[href*="/workflow/"]').pathname`)
	flowPage = flowPage[strings.Index(flowPage, "workflow/"):]
	pages := []string{"", "threads", "threads?q=evil", "stats?since=&by=workflow&by=role&by=model&by=agent", "workflows", flowPage, "thread/" + id, "thread/" + other, step, "diff?a=" + id + "&b=" + other}
	w.screen(360, true)
	for _, page := range pages {
		w.open(page)
		w.harmless(page)
		require.Equal(t, 1, evaluate[int](w, "document.scripts.length"), page)
		w.accessible(page)
	}
	there := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			rw.WriteHeader(http.StatusNoContent) // the browser requests an icon
			return
		}
		http.ServeFile(rw, r, file)
	}))
	defer there.Close()
	w.do(chromedp.Navigate(there.URL), chromedp.WaitVisible(chromedp.CSS("h1")))
	w.harmless("the file")
	require.Zero(t, evaluate[int](w, "document.scripts.length"))
	w.quiet()
}

// harmless checks that nothing on the page was executed or hidden, and that nothing is wider than the screen.
func (w *world) harmless(page string) {
	w.Helper()
	require.True(w, evaluate[bool](w, "window.hacked === undefined && !document.querySelector('base, style:not(head style), svg:not(.bar, .time, .columns, .swatch), a[href^=\"javascript\"]')"), page)
	require.Zero(w, evaluate[int](w, "document.documentElement.scrollWidth - document.documentElement.clientWidth"), "%s is wider than the screen", page)
	require.NotContains(w, w.text(), "\u202e", page)
}
