//go:build browser

package webtest

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// accessible checks that axe-core, which make test-web installs, finds no problem on the page.
func (w *world) accessible(page string) {
	w.Helper()
	axe, err := os.ReadFile(filepath.Join(repo(w.T), ".tmp", "axe", "node_modules", "axe-core", "axe.min.js"))
	require.NoError(w, err, "make test-web installs it")
	_, err = chromedp.Run(w.ctx, chromedp.Evaluate[bool](string(axe)+"; true"))
	require.NoError(w, err)
	found, err := chromedp.Run(w.ctx, chromedp.Evaluate[[]string](
		`axe.run().then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`, chromedp.EvalAwaitPromise))
	require.NoError(w, err, page)
	assert.Empty(w, found, "%s:\n%s", page, strings.Join(found, "\n"))
}
