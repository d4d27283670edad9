//go:build endpoint

package react

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// A fake endpoint that others have written, from the npm registry.
const (
	foreign     = "@copilotkit/aimock@1.43.0"
	foreignMain = "node_modules/@copilotkit/aimock/dist/cli.js"
)

// startForeign installs the server below .tmp and starts it with our fixtures.
func startForeign(t *testing.T, more ...string) string {
	t.Helper()
	dir, err := filepath.Abs("../../.tmp/endpoint")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", dir, foreign)
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("NOT RUN: npm could not install %s, so nothing was tried against it: %v\n%s", foreign, err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	require.NoError(t, l.Close())
	args := append([]string{filepath.Join(dir, foreignMain), "--port", port, "--strict", "--fixtures", "testdata/foreign/fixtures.json"}, more...)
	cmd := exec.CommandContext(t.Context(), "node", args...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	go func() {
		for s := bufio.NewScanner(stdout); s.Scan(); {
		}
	}()
	url := "http://127.0.0.1:" + port
	require.Eventually(t, func() bool {
		resp, err := http.Get(url + "/health")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil
	}, 20*time.Second, 50*time.Millisecond)
	t.Logf("RAN against %s at %s", foreign, url)
	return url + "/v1"
}

func foreignBench(t *testing.T, url string, stream bool) *bench {
	t.Helper()
	b := newBench(t, script(t, say("not asked")))
	b.Model = llm.New(config.Endpoint{BaseURL: url, APIKey: "sk-fake-key-000", Model: "gpt-4o", Provider: "foreign", Stream: stream}, llm.Options{
		Sleep: func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) },
	})
	return b
}

func (b *bench) ask(text string) (Answer, error) {
	b.t.Helper()
	s, err := b.sessions.New(llm.System("system"), llm.User(text))
	require.NoError(b.t, err)
	return b.Run(b.t.Context(), s)
}

func TestForeignEndpoint(t *testing.T) {
	url := startForeign(t)
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream %v", stream), func(t *testing.T) {
			b := foreignBench(t, url, stream)
			var written []string
			b.Watch = func(soFar func() llm.Message) { written = append(written, soFar().Content) }
			answer, err := b.ask("count")
			require.NoError(t, err)
			require.Equal(t, Done, answer.Outcome)
			require.Equal(t, []string{`echo one "quoted" ✓`, "write two"}, b.ran, "parallel calls, in order")
			require.Equal(t, final, answer.Text)
			require.EqualValues(t, 12, b.turns[3].Usage.OutputTokens)
			require.Equal(t, stream, len(written) > 0, "it is watched while it is written")

			b = foreignBench(t, url, stream)
			b.Resolve = &Resolve{Schema: plan}
			answer, err = b.ask("resolve")
			require.NoError(t, err)
			require.Equal(t, map[string]any{"plan": "swap"}, answer.Value)

			_, err = foreignBench(t, url, stream).ask("refuse")
			var e *llm.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, llm.KindQuota, e.Kind)
			require.NotContains(t, err.Error(), "sk-fake")

			_, err = foreignBench(t, url, stream).ask("nothing has this name")
			require.ErrorAs(t, err, &e)
		})
	}
	_, err := foreignBench(t, url, true).ask("cut")
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, []llm.Kind{llm.KindStreamCut, llm.KindNetwork}, e.Kind, "nothing of a cut stream is an answer")
}

// Faults at random: what passes passes unseen.
func TestForeignEndpointWithFaults(t *testing.T) {
	url := startForeign(t, "--chaos-drop", "0.15", "--chaos-malformed", "0.1", "--chaos-disconnect", "0.1", "--chaos-ratelimit", "0.1")
	for range 25 {
		answer, err := foreignBench(t, url, rand.IntN(2) == 0).ask("chaos")
		if err != nil { // five times in a row is possible
			require.True(t, strings.Contains(err.Error(), "tried"), err)
			continue
		}
		require.Contains(t, answer.Text, "at last")
	}
}
