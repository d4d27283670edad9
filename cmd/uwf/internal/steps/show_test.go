package steps_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// told is a thread of two steps with two turns and one.
func told(t *testing.T) (w *clitest.World, thread string, steps []protocol.Hash) {
	t.Helper()
	w = clitest.New(t)
	thread = w.Thread("The task.")
	agent := w.Agent(thread, "worker")
	agent.Stdin = answer
	agent.File("detail.json", `{"model":"m","turns":[{"role":"user","content":"Ask.","atMs":3},{"role":"assistant","content":"Say.","toolCalls":[{"id":"1","name":"run","args":{"a":1}}]}]}`)
	h := protocol.Hash(agent.Must("step put --output - --detail detail.json --agent uwf-test --session s", "--usage", `{"turns":2,"costUsd":0.5}`)["stepHash"].(string))
	w.Clock = agent.Clock
	w.Move(thread, h)
	return w, thread, []protocol.Hash{h, w.Step(thread, 2, "The second.")}
}

func TestShow(t *testing.T) {
	t.Parallel()
	w, thread, steps := told(t)
	got := w.Must("step show " + string(steps[0]))
	step := clitest.Payload[protocol.Step](w, steps[0])
	assert.Equal(t, step.StartedAtMs, integer(t, got, "startedAtMs"))
	assert.Equal(t, step.CompletedAtMs, integer(t, got, "completedAtMs"))
	for _, key := range []string{"startedAtMs", "completedAtMs"} {
		delete(got, key)
	}
	usage := got["usage"].(map[string]any)
	assert.Equal(t, [2]any{json.Number("2"), json.Number("0.5")}, [2]any{usage["turns"], usage["costUsd"]})
	delete(got, "usage")
	turns := got["turns"].([]any)
	delete(got, "turns")
	assert.Len(t, turns, 2)
	assert.Equal(t, []any{map[string]any{"id": "1", "name": "run", "args": map[string]any{"a": json.Number("1")}}}, turns[1].(map[string]any)["toolCalls"])
	detail := got["detail"].(map[string]any)
	delete(got, "detail")
	assert.Equal(t, "m", detail["model"])
	assert.NotContains(t, detail, "turns")
	assert.Equal(t, map[string]any{
		"hash": string(steps[0]), "index": json.Number("0"), "number": json.Number("1"), "role": "worker", "agent": "uwf-test", "status": "more",
		"durationMs": json.Number("0"), "sessionId": "s", "edgePrompt": "", "cwd": w.Dir, "extractedBy": "frontmatter",
		"frontmatter": map[string]any{"$status": "more", "n": json.Number("1")},
	}, got)
	for place, want := range map[string]protocol.Hash{thread + "@1": steps[0], thread + "@-1": steps[1], "@-2": steps[0], thread + "@worker": steps[1], thread + "@worker@1": steps[0], string(steps[0])[:8]: steps[0]} {
		assert.Equal(t, string(want), w.Must("step show " + place)["hash"], place)
	}
	assert.Equal(t, json.Number("2"), w.Must("step show @-1")["number"])
	details := w.Must("thread step-details --format json " + string(steps[0]))
	assert.Len(t, details["turns"], 2)
	yaml := w.Run("thread step-details " + string(steps[0]))
	assert.Contains(t, yaml.Out, "model: m\n")
}

func integer(t *testing.T, object map[string]any, key string) int64 {
	t.Helper()
	n, err := object[key].(json.Number).Int64()
	require.NoError(t, err)
	return n
}

// Arguments that are not steps, for each command about one.
func TestNoStep(t *testing.T) {
	t.Parallel()
	w, thread, steps := told(t)
	start := string(clitest.Payload[protocol.Step](w, steps[0]).Start)
	output := string(clitest.Payload[protocol.Step](w, steps[0]).Output)
	for _, command := range []string{"step show", "step read", "step diff", "thread step-details"} {
		for arg, code := range map[string]protocol.Code{
			"0000000000000": "not_found", start: "invalid", output: "invalid", thread: "not_found", thread + "@3": "not_found", thread + "@0": "invalid",
			thread + "@worker@3": "not_found", thread + "@worker@0": "usage", thread + "@wroker": "not_found", "": "usage",
		} {
			r := w.Fail(command + " " + arg)
			assert.Equal(t, code, r.Code, "%s %s: %s", command, arg, r.Err)
			assert.Equal(t, code.ExitCode(), r.Status, "%s %s", command, arg)
			assert.Empty(t, r.Out, "%s %s", command, arg)
		}
	}
	refuse(t, w,
		refused{"step show " + start, "invalid", 4, nil},
		refused{"step diff " + string(steps[0]), "not_found", 3, nil},
		refused{"step read --quota 0 " + string(steps[0]), "usage", 2, nil},
		refused{"step read --quota x " + string(steps[0]), "usage", 2, nil},
	)
}

func TestRead(t *testing.T) {
	t.Parallel()
	w, _, steps := told(t)
	first := string(steps[0])
	prosetest.Text(t, w.Run("step read "+first).Out)
	prompt := w.Run("step read " + first + " --prompt").Out
	assert.Contains(t, prompt, "# Step "+first+"\n\n**Role:** worker\n**Agent:** uwf-test\n\n## Prompt\n\n")
	assert.Contains(t, prompt, "The task.")
	// If not all turns fit, the newest are shown, and the last one is shortened.
	whole := w.Run("step read " + first).Out
	for quota := 1; quota <= len([]rune(whole)); quota++ {
		r := w.Run("step read "+first+" --quota", itoa(quota))
		require.Zero(t, r.Status, r.Err)
		if quota > 200 {
			assert.LessOrEqual(t, len([]rune(r.Out)), quota)
		}
		assert.Contains(t, r.Out, "# Step "+first)
	}
	length := len([]rune(whole)) - 1
	assert.Equal(t, whole, w.Run("step read "+first+" --quota "+itoa(length+1)).Out)
	for _, quota := range []int{length, length - 40} {
		r := w.Run("step read " + first + " --quota " + itoa(quota))
		assert.NotContains(t, r.Out, "Ask.", "%d: an older turn, but not the newest one", quota)
		prosetest.Text(t, r.Out, length-quota)
	}
}

func itoa(n int) string {
	text, _ := json.Marshal(n)
	return string(text)
}

// Redacted content is marked in its place.
func TestReadRedacted(t *testing.T) {
	t.Parallel()
	w, thread, steps := told(t)
	step := clitest.Payload[protocol.Step](w, steps[0])
	detail := clitest.Payload[protocol.Detail](w, step.Detail)
	for _, h := range []protocol.Hash{detail.Turns[1], *step.Prompt, step.Detail} {
		w.Must("thread redact " + thread + " --node " + string(h) + " --reason why")
		for _, line := range []string{"step read", "step read --prompt"} {
			r := w.Run(line + " " + string(steps[0]))
			require.Zero(t, r.Status, r.Err)
			prosetest.Text(t, r.Out, line)
		}
		require.Zero(t, w.Run("step show "+string(steps[0])).Status)
		r := w.Run("step turns " + thread)
		require.Zero(t, r.Status, r.Err)
		prosetest.Text(t, r.Out, "turns")
	}
}

// lines parses lines of JSON.
func lines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var objects []map[string]any
	for line := range strings.Lines(text) {
		var object map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &object), line)
		objects = append(objects, object)
	}
	return objects
}

func TestTurns(t *testing.T) {
	t.Parallel()
	w, thread, steps := told(t)
	type line struct {
		step          string
		number, index float64
		content       string
	}
	all := []line{{string(steps[0]), 1, 1, "Ask."}, {string(steps[0]), 1, 2, "Say."}, {string(steps[1]), 2, 3, "The second."}}
	for args, want := range map[string][]line{
		"": all, "--role worker": all, "--limit 3": all, "--limit 9": all, "--limit 2": all[:2], "--limit 0": nil, "--offset 0": all, "--offset 1": all[1:],
		"--offset 3": nil, "--offset 1 --limit 1": all[1:2], "--offset 2 --limit 5": all[2:], "--live": all,
	} {
		r := w.Run("step turns " + thread + " --format json " + args)
		require.Zero(t, r.Status, r.Err)
		var got []line
		for _, o := range lines(t, r.Out) {
			assert.Equal(t, "worker", o["role"], args)
			assert.Equal(t, false, o["running"], args)
			got = append(got, line{o["step"].(string), o["number"].(float64), o["index"].(float64), o["turn"].(map[string]any)["content"].(string)})
		}
		assert.Equal(t, want, got, args)
	}
	prosetest.Text(t, w.Run("step turns "+thread).Out)
	prosetest.Text(t, w.Run("step turns --offset 2 "+thread).Out, "the last one")
	refuse(t, w,
		refused{"step turns " + thread + " --role wroker", "not_found", 3, nil},
		refused{"step turns " + thread + " --limit x", "usage", 2, nil},
		refused{"step turns " + thread + " --limit -1", "usage", 2, nil},
		refused{"step turns " + thread + " --offset x", "usage", 2, nil},
		refused{"step turns 01B", "not_found", 3, nil},
		refused{"step turns", "usage", 2, nil},
	)
	empty := w.Thread("Another.")
	r := w.Run("step turns " + empty)
	assert.Zero(t, r.Status)
	assert.Equal(t, "# Thread `"+empty+"`\n", r.Out)
	assert.Empty(t, w.Run("step turns --json "+empty).Out)
}

// A bundle can replace a home.
func TestOfBundles(t *testing.T) {
	t.Parallel()
	w, thread, steps := told(t)
	w.Must("thread export " + thread + " -o a.uwfb")
	other := w.Other()
	assert.Equal(t, w.Must("step show "+string(steps[0])), other.Must("step show --bundle a.uwfb "+string(steps[0])))
	assert.Equal(t, w.Run("step turns "+thread).Out, other.Run("step turns a.uwfb").Out)
	assert.Equal(t, w.Run("step read "+string(steps[0])).Out, other.Run("step read a.uwfb@1").Out)
	refuse(t, other, refused{"step diff --bundle a.uwfb " + string(steps[0]), "not_found", 3, nil})
	_, err := os.Stat(other.Home)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A result that cannot be printed is an error, whichever part fails.
func TestUnprinted(t *testing.T) {
	t.Parallel()
	w, thread, steps := told(t)
	for _, line := range []string{"step show @1", "step read @1", "step read --prompt @1", "step turns " + thread, "thread step-details @1"} {
		w.Unprinted(strings.Replace(line, "@1", string(steps[0]), 1))
	}
	agent := w.Agent(thread, "worker")
	agent.Stdin = answer
	for _, line := range []string{"step prompt", "step turn --content -", "step put --output -"} {
		agent.Unprinted(line)
	}
	model(t, agent, `{"$status": "more", "n": 5}`)
	agent.Unprinted("step extract --output -")
}

// Missing nodes are never ignored.
func TestLossy(t *testing.T) {
	t.Parallel()
	w, thread, _ := told(t)
	first := thread + "@1"
	w.Lossy("step show "+first, "step read "+first, "step read --prompt "+first, "step turns "+thread, "step turns --json "+thread, "thread step-details "+first)
	agent := with(w.Agent(thread, "worker"), protocol.EnvPrompt, w.Must("cas put-text", "Go on.")["hash"].(string))
	agent.Lossy("step prompt")
}

// What each command needs of a home.
func TestSpoilt(t *testing.T) {
	t.Parallel()
	w, thread, _ := told(t)
	agent := w.Agent(thread, "worker")
	agent.Stdin = answer
	for _, line := range []string{"step prompt", "step put --output -", "step turns " + thread} {
		prosetest.Text(t, agent.Spoilt(line), line)
	}
}
