package agentkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/jsonschema/library"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// asked are uwf's arguments when an agent has it judge: the test binary is then
// uwf, as this variable says.
const (
	asked = "--format json cas schema validate - -"
	beUwf = "AGENTKIT_TEST_UWF"
)

// playUwf judges as uwf does, or fails to.
func playUwf(how string) int {
	if log, ok := strings.CutPrefix(how, "log:"); ok {
		if err := appendLine(log); err != nil {
			return 1
		}
	}
	switch how {
	case "old":
		fmt.Fprintln(os.Stderr, "uwf: schema not found: -")
		return 3
	case "torn":
		fmt.Print(`{"valid":`)
		return 0
	case "contradicts itself":
		fmt.Print(`{"valid":false}`)
		return 4
	case "hangs":
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Fprintln(os.Stderr, "hanging")
		time.Sleep(time.Hour)
	}
	var schema, value any
	dec := json.NewDecoder(os.Stdin)
	if dec.Decode(&schema) != nil || dec.Decode(&value) != nil {
		return 1
	}
	verdict, err := library.Judge(schema)
	if err != nil {
		return 1
	}
	problems, err := verdict(context.Background(), value)
	if err != nil {
		return 1
	}
	if json.NewEncoder(os.Stdout).Encode(map[string]any{"valid": len(problems) == 0, "problems": problems}) != nil {
		return 1
	}
	return 0
}

func appendLine(path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, "asked")
	return err
}

// rare is a schema that only the library knows.
var rare = map[string]any{
	"type": "object", "required": []any{"$status"},
	"properties": map[string]any{
		"$status": map[string]any{"type": "string"},
		"mail":    map[string]any{"format": "email"},
	},
}

// asking plays an agent that has to ask a uwf that behaves as how says.
func asking(t *testing.T, ctx context.Context, how string, mail any) *agentkittest.Outcome {
	exe, err := os.Executable()
	require.NoError(t, err)
	o := agentkit.Options{Name: "asks", Structured: true, Run: func(context.Context, *agentkit.Request) (agentkit.Result, error) {
		return agentkit.Result{Value: map[string]any{"$status": "done", "mail": mail}, SessionID: "s"}, nil
	}}
	th := agentkittest.New(t, agentkittest.Scenario{Schema: rare, Environ: []string{protocol.EnvBin + "=" + exe, beUwf + "=" + how}})
	return th.Play(func(e env.Env) int { return agentkit.Main(ctx, e, o) })
}

func TestUwfIsAsked(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	got := asking(t, t.Context(), "log:"+log, `"a b"@b.example`).Succeeded()
	require.Equal(t, map[string]any{"$status": "done", "mail": `"a b"@b.example`}, got.Output)
	lines, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "asked\n", string(lines), "once for one value, however often it is looked at")

	asking(t, t.Context(), "judges", "nobody").Failed("`mail`: must be an email address, but is \"nobody\"")
}

// Whatever is wrong with uwf, no output passes unseen, and the author is told
// what to do.
func TestUwfCannotBeAsked(t *testing.T) {
	t.Parallel()
	for how, because := range map[string]string{
		"old":                "uwf: schema not found: -",
		"torn":               "it gives no verdict",
		"contradicts itself": "it gives no verdict",
	} {
		got := asking(t, t.Context(), how, "x")
		got.Failed(because)
		got.Failed("hint: set UWF_BIN to the path of uwf")
	}
	o := agentkit.Options{Name: "asks", Run: answer(wrong)}
	th := agentkittest.New(t, agentkittest.Scenario{Environ: []string{"PATH=" + t.TempDir(), protocol.EnvBin + "="}})
	th.Play(func(e env.Env) int { return agentkit.Main(t.Context(), e, o) }).Failed("needs uwf to be judged by its schema: executable file not found")
}

func TestAskingEndsWithTheStep(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	asking(t, ctx, "hangs", "x").Failed("deadline exceeded")
}
