package steps_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/utilagent/modelcall"
)

const answer = "---\n$status: more\nn: 1\n---\nDone so far.\n"

// agent is a home with a thread of one step, as seen by the agent of the second.
func agent(t *testing.T) (w *clitest.World, thread string) {
	t.Helper()
	home := clitest.New(t)
	thread = home.Thread("The task.")
	home.Step(thread, 7, "The first answer.")
	w = home.Agent(thread, "worker")
	w.Stdin = answer
	return w, thread
}

// with sets an environment variable.
func with(w *clitest.World, name, value string) *clitest.World {
	w.Environ = slices.Concat(w.Environ, []string{name + "=" + value})
	return w
}

// put makes a step and reads it.
func put(t *testing.T, w *clitest.World, args ...string) (protocol.Step, protocol.Detail) {
	t.Helper()
	result := w.Must("step put", args...)
	step := clitest.Payload[protocol.Step](w, protocol.Hash(result["stepHash"].(string)))
	assert.Equal(t, "worker", result["role"])
	assert.Equal(t, string(step.Detail), result["detailHash"])
	assert.Equal(t, true, result["durable"])
	assert.Equal(t, "worker", step.Role)
	assert.Equal(t, 1, step.Index)
	return step, clitest.Payload[protocol.Detail](w, step.Detail)
}

func TestPut(t *testing.T) {
	t.Parallel()
	w, thread := agent(t)
	step, detail := put(t, w, "--output", "-")
	assert.Equal(t, "uwf-exec", step.Agent)
	assert.Equal(t, thread+"-worker", step.SessionID)
	assert.Equal(t, protocol.ByFrontmatter, step.ExtractedBy)
	assert.Nil(t, step.Usage)
	assert.Equal(t, w.Dir, step.Cwd)
	assert.Equal(t, map[string]any{"$status": "more", "n": int64(1)}, value(t, w, step.Output))
	assert.Equal(t, w.Clock.UnixMilli(), step.CompletedAtMs)
	assert.Equal(t, step.CompletedAtMs, step.StartedAtMs, "nobody knows when it began")
	require.Len(t, detail.Turns, 1)
	assert.Equal(t, protocol.Turn{Role: protocol.TurnAssistant, Content: answer, AtMs: step.CompletedAtMs}, turn(w, detail, 0))
	assert.Contains(t, string(clitest.Payload[protocol.Text](w, *step.Prompt)), "The task.")

	w.File("answer.md", answer)
	step, _ = put(t, w, "--output", "answer.md", "--session", "s1", "--agent", "mine")
	assert.Equal(t, [2]string{"uwf-mine", "s1"}, [2]string{step.Agent, step.SessionID})
	step, _ = put(t, with(w, protocol.EnvAgent, "dir/fast"), "--output", "answer.md")
	assert.Equal(t, "uwf-fast", step.Agent)
	edge := w.Must("cas put-text", "Go on.")["hash"].(string)
	step, _ = put(t, with(with(w, protocol.EnvPrompt, edge), protocol.EnvLimitBase, "4"), "--output", "answer.md")
	assert.Equal(t, "Go on.", step.EdgePrompt)
	assert.Equal(t, 4, step.LimitBase)
}

func value(t *testing.T, w *clitest.World, h protocol.Hash) any {
	t.Helper()
	n, err := w.Store().Get(t.Context(), h)
	require.NoError(t, err)
	v, err := n.Value()
	require.NoError(t, err)
	return v
}

func turn(w *clitest.World, d protocol.Detail, i int) protocol.Turn {
	w.T.Helper()
	return clitest.Payload[protocol.Turn](w, d.Turns[i])
}

func TestPutUsage(t *testing.T) {
	t.Parallel()
	w, _ := agent(t)
	step, _ := put(t, w, "--output", "-", "--usage", `{"turns":2,"inputTokens":100,"outputTokens":20,"costUsd":0.5}`)
	require.NotNil(t, step.Usage)
	assert.Equal(t, 2, step.Usage.Turns)
	assert.EqualValues(t, 100, step.Usage.InputTokens)
	assert.EqualValues(t, 20, step.Usage.OutputTokens)
	for _, usage := range []string{`{"turn":2}`, `{"turns":-1}`, `[]`, `{"turns":1} x`, `{"turns":1,"turns":2}`} {
		r := w.Run("step put --output -", "--usage", usage)
		assert.Equal(t, protocol.CodeInvalid.ExitCode(), r.Status, usage)
		assert.Empty(t, r.Out, usage)
		prosetest.Text(t, r.Err, usage)
	}
}

// The run's record contains its start time, unless the clock was set back since.
func TestPutTimes(t *testing.T) {
	t.Parallel()
	for ago, want := range map[time.Duration]int64{time.Minute: 61_000, 0: 1_000, -time.Hour: 0} {
		w, _ := agent(t)
		dir := runfiles.Dir(t.TempDir())
		record, err := json.Marshal(map[string]any{"startedAt": w.Clock.Add(-ago).UnixMilli()})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(dir.File(runfiles.RecordFile), record, 0o600))
		step, _ := put(t, with(w, protocol.EnvRunDir, string(dir)), "--output", "-", "--usage", `{"turns":1}`)
		assert.Equal(t, want, step.CompletedAtMs-step.StartedAtMs, ago)
		assert.Equal(t, want, step.Usage.DurationMs, ago)
	}
}

func TestPutDetail(t *testing.T) {
	t.Parallel()
	w, _ := agent(t)
	w.File("detail.json", `{"model":"m","agentVersion":"v","outcome":"fine","durationMs":5,"turns":[
		{"role":"user","content":"ask","atMs":3},{"role":"assistant","content":"say","index":9}]}`)
	step, detail := put(t, w, "--output", "-", "--detail", "detail.json")
	assert.Equal(t, [3]string{"m", "v", "fine"}, [3]string{detail.Model, detail.AgentVersion, detail.Outcome})
	assert.EqualValues(t, 5, detail.DurationMs)
	require.Len(t, detail.Turns, 2)
	assert.Equal(t, protocol.Turn{Role: protocol.TurnUser, Content: "ask", AtMs: 3}, turn(w, detail, 0))
	assert.Equal(t, protocol.Turn{Role: protocol.TurnAssistant, Content: "say", Index: 1, AtMs: step.CompletedAtMs}, turn(w, detail, 1))
	for name, text := range map[string]string{
		"unknown": `{"modle":"m"}`, "no json": `turns`, "usage": `{"turns":[{"role":"user","content":"x","usage":{"turns":-1}}]}`, "role": `{"turns":[{"role":"me","content":"x"}]}`,
	} {
		w.File("detail.json", text)
		r := w.Run("step put --output - --detail detail.json")
		assert.NotZero(t, r.Status, name)
		assert.Empty(t, r.Out, name)
		prosetest.Text(t, r.Err, name)
	}
	r := w.Run("step put --output - --detail nowhere.json")
	assert.Equal(t, protocol.CodeNotFound.ExitCode(), r.Status)
}

// Announced turns are in the detail, with the answer exactly once.
func TestPutAnnounced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		turns []string
		want  []string
	}{
		{"none", nil, []string{answer}},
		{"others", []string{"I begin.", "I work."}, []string{"I begin.", "I work.", answer}},
		{"the answer", []string{"I begin.", answer}, []string{"I begin.", answer}},
		{"the answer without its end", []string{strings.TrimSpace(answer)}, []string{strings.TrimSpace(answer)}},
		{"the answer first", []string{answer, "More."}, []string{answer, "More.", answer}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, _ := agent(t)
			dir := runfiles.Dir(t.TempDir())
			with(w, protocol.EnvRunDir, string(dir))
			told := ""
			for i, text := range c.turns {
				w.Stdin = text
				r := w.Run("step turn --content -")
				require.Zero(t, r.Status, r.Err)
				told += r.Out
				require.NoError(t, os.WriteFile(dir.File(runfiles.StdoutFile), []byte(told), 0o600))
				line := w.JSON(r.Out)
				assert.Equal(t, "turn", line["uwf"])
				got := clitest.Payload[protocol.Turn](w, protocol.Hash(line["hash"].(string)))
				assert.Equal(t, protocol.Turn{Role: protocol.TurnAssistant, Content: text, Index: i, AtMs: w.Clock.UnixMilli()}, got)
			}
			w.Stdin = answer
			_, detail := put(t, w, "--output", "-")
			var got []string
			for i := range detail.Turns {
				said := turn(w, detail, i)
				got = append(got, said.Content)
				assert.Equal(t, i, said.Index)
			}
			assert.Equal(t, c.want, got)
			_, detail = put(t, w, "--output", "-", "--detail", w.File("detail.json", `{"turns":[{"role":"user","content":"x"}]}`))
			assert.Len(t, detail.Turns, 1, "--detail takes their place")
		})
	}
}

func TestTurn(t *testing.T) {
	t.Parallel()
	w, _ := agent(t)
	w.File("said", "calls")
	h := w.Must("step turn --content said --role assistant --tool-calls", `[{"id":"1","name":"run","args":{"argv":["ls"]}}]`)["hash"].(string)
	got := clitest.Payload[protocol.Turn](w, protocol.Hash(h))
	assert.Equal(t, []protocol.ToolCall{{ID: "1", Name: "run", Args: map[string]any{"argv": []any{"ls"}}}}, got.ToolCalls)
	h = w.Must("step turn --content said --role tool --tool-call-id 1")["hash"].(string)
	got = clitest.Payload[protocol.Turn](w, protocol.Hash(h))
	assert.Equal(t, protocol.Turn{Role: protocol.TurnTool, ToolCallID: "1", Content: "calls", AtMs: w.Clock.UnixMilli()}, got)
	refuse(t, w,
		refused{"step turn", "usage", 2, nil},
		refused{"step turn --content nowhere", "not_found", 3, nil},
		refused{"step turn --content .", "not_found", 3, nil},
		refused{"step turn --content said --role boss", "usage", 2, nil},
		refused{"step turn --content said --tool-calls", "invalid", 4, []string{`{"id":"1"}`}},
		refused{"step turn --content said --tool-calls", "invalid", 4, []string{`[{"id":"1","nome":"x"}]`}},
	)
}

// refused is a command line and its expected error.
type refused struct {
	line   string
	code   protocol.Code
	status int
	more   []string
}

// refuse runs command lines that must print no result.
func refuse(t *testing.T, w *clitest.World, lines ...refused) {
	t.Helper()
	for _, c := range lines {
		r := w.Fail(c.line, c.more...)
		assert.Equal(t, c.code, r.Code, "%s %q: %s", c.line, c.more, r.Err)
		assert.Equal(t, c.status, r.Status, "%s %q", c.line, c.more)
		assert.Empty(t, r.Out, "%s %q", c.line, c.more)
		prosetest.Text(t, r.Err)
	}
}

// Each of an agent's commands requires certain environment variables. Errors of put and extract are for a
// model, so they are not JSON.
func TestAssignment(t *testing.T) {
	t.Parallel()
	text, _ := agent(t)
	alien := text.Must("cas put-text", "alien")["hash"].(string)
	for _, c := range []struct {
		name, variable, value string
		code                  protocol.Code
		turns                 bool // step turn requires it as well
	}{
		{"no head", protocol.EnvHead, "", "usage", true},
		{"no role", protocol.EnvRole, "", "usage", true},
		{"a bad base", protocol.EnvLimitBase, "x", "usage", true},
		{"a negative base", protocol.EnvLimitBase, "-1", "usage", true},
		{"no prompt", protocol.EnvPrompt, "0000000000000", "corrupt", true},
		{"another role", protocol.EnvRole, "wroker", "not_found", false},
		{"no such head", protocol.EnvHead, "0000000000000", "corrupt", false},
		{"a head that is none", protocol.EnvHead, alien, "", false},
	} {
		w := *text
		with(&w, c.variable, c.value)
		for _, command := range []string{"step prompt", "step turn --content -", "step put --output -", "step extract --output -"} {
			r := w.Fail(command)
			if command == "step turn --content -" && !c.turns {
				assert.Zero(t, r.Status, "%s: %s", c.name, command)
				continue
			}
			assert.NotZero(t, r.Status, "%s: %s", c.name, command)
			assert.Empty(t, r.Out, "%s: %s", c.name, command)
			if c.code != "" {
				assert.Equal(t, c.code.ExitCode(), r.Status, "%s: %s: %s", c.name, command, r.Err)
			}
			if command == "step prompt" {
				assert.Equal(t, c.code != "", r.Code == c.code, c.name)
				prosetest.Text(t, r.Err, c.name)
			}
		}
	}
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	w, _ := agent(t)
	parts := map[string]string{}
	for _, part := range []string{"all", "system", "user"} {
		r := w.Run("step prompt --part " + part)
		require.Zero(t, r.Status, r.Err)
		parts[part] = r.Out
	}
	assert.Equal(t, parts["all"], w.Run("step prompt").Out)
	assert.Contains(t, parts["user"], "The task.")
	assert.Contains(t, parts["user"], "The first answer.")
	assert.NotContains(t, parts["system"], "The first answer.")
	assert.Contains(t, parts["system"], "Work.")
	assert.Contains(t, parts["all"], strings.TrimSpace(parts["system"]))
	assert.Contains(t, parts["all"], strings.TrimSpace(parts["user"]))
	for _, text := range parts {
		assert.True(t, strings.HasSuffix(text, "\n"))
	}
	refuse(t, w, refused{"step prompt --part sytem", "usage", 2, nil}, refused{"step prompt --part x", "usage", 2, nil})
}

// The error for an invalid answer is a text for a model, and for the engine the result of a failed agent.
func TestPutRefused(t *testing.T) {
	t.Parallel()
	w, thread := agent(t)
	before := w.Must("cas fsck")["nodes"]
	for _, c := range []struct{ name, answer string }{
		{"no frontmatter", "All well."}, {"empty", ""}, {"other data", "---\n$status: maybe\nn: one\n---\n"}, {"no YAML", "---\nn: [\n---\n"},
	} {
		w.Stdin = c.answer
		r := w.Run("step put --output -")
		assert.Equal(t, protocol.CodeInvalid.ExitCode(), r.Status, c.name)
		told := w.JSON(r.Out)
		assert.Equal(t, "worker", told["role"], c.name)
		assert.Contains(t, told["error"], "worker", c.name)
		assert.Nil(t, told["stepHash"], c.name)
		prosetest.Text(t, r.Err, c.name)
	}
	assert.Equal(t, before, w.Must("cas fsck")["nodes"], "nothing was stored")
	w.Stdin = answer
	for _, name := range []string{"uwf-command", "command", "uwf-person", "uwf-join"} {
		r := w.Run("step put --output - --agent " + name)
		assert.Equal(t, protocol.CodeUsage.ExitCode(), r.Status, name)
		assert.Empty(t, r.Out, name)
	}
	for _, line := range []string{"step put", "step extract"} {
		assert.Equal(t, 2, w.Run(line).Status, line)
		assert.Equal(t, 3, w.Run(line+" --output nowhere").Status, line)
	}
	assert.Equal(t, "worker", clitest.Payload[protocol.Step](w, w.Head(thread)).Role)
}

// model answers every request with a text and records the last one.
func model(t *testing.T, w *clitest.World, reply string) *string {
	t.Helper()
	var asked string
	body, err := json.Marshal(map[string]any{
		"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": reply}, "finish_reason": "stop"}},
		"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 7},
	})
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		question, _ := io.ReadAll(r.Body)
		asked = string(question)
		out.Header().Set("Content-Type", "application/json")
		_, _ = out.Write(body)
	}))
	t.Cleanup(server.Close)
	exe, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(exe, filepath.Join(bin, modelcall.Program)))
	w.Environ = append(w.Environ, "PATH="+bin)
	config := fmt.Sprintf("providers: {p: {baseUrl: %q}}\nmodels: {m: {provider: p, name: small}}\ndefaultModel: m\n", server.URL)
	require.NoError(t, os.WriteFile(filepath.Join(w.Home, "config.yaml"), []byte(config), 0o600))
	return &asked
}

func TestExtract(t *testing.T) {
	t.Parallel()
	w, _ := agent(t)
	w.Stdin = "All well: one."
	r := w.Run("step extract --output -")
	assert.Equal(t, protocol.CodeInvalid.ExitCode(), r.Status, "no model: %s", r.Err)
	assert.Empty(t, r.Out)
	assert.Equal(t, protocol.CodeInvalid.ExitCode(), w.Run("step put --final --output -").Status)

	asked := model(t, w, `{"$status": "more", "n": 5}`)
	said := w.Must("step extract --output -")
	assert.Equal(t, map[string]any{"$status": "more", "n": json.Number("5")}, said["value"])
	assert.Equal(t, "m", said["model"])
	assert.Equal(t, json.Number("100"), said["usage"].(map[string]any)["inputTokens"])
	assert.Nil(t, said["error"])
	assert.Contains(t, *asked, "All well: one.")

	step, _ := put(t, w, "--final", "--output", "-", "--usage", `{"turns":1,"inputTokens":11,"outputTokens":2}`)
	assert.Equal(t, protocol.ByLLM, step.ExtractedBy)
	assert.Equal(t, map[string]any{"$status": "more", "n": int64(5)}, value(t, w, step.Output))
	assert.EqualValues(t, 111, step.Usage.InputTokens)
	assert.EqualValues(t, 9, step.Usage.OutputTokens)
	*asked = ""
	assert.Equal(t, protocol.CodeInvalid.ExitCode(), w.Run("step put --output -").Status, "only the last answer is read by it")
	w.Stdin = answer
	step, _ = put(t, w, "--final", "--output", "-")
	assert.Equal(t, protocol.ByFrontmatter, step.ExtractedBy)
	assert.Empty(t, *asked)
}

// A model that finds nothing must not invent anything.
func TestExtractNothing(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"null", "no", `{"$status": "maybe"}`} {
		w, _ := agent(t)
		w.Stdin = "All well."
		model(t, w, reply)
		r := w.Run("step extract --output -")
		assert.NotZero(t, r.Status, reply)
		said := w.JSON(r.Out)
		assert.Nil(t, said["value"], reply)
		assert.NotEmpty(t, said["error"], reply)
		r = w.Run("step put --final --output -")
		assert.NotZero(t, r.Status, reply)
		assert.Nil(t, w.JSON(r.Out)["stepHash"], reply)
		prosetest.Text(t, r.Err, reply)
	}
}

// Secrets in an agent's texts are hidden before they are stored or sent.
func TestSecretsOfAgents(t *testing.T) {
	t.Parallel()
	const key = "sk-0123456789abcdef0123"
	w, _ := agent(t)
	asked := model(t, w, `{"$status": "more", "n": 5}`)
	with(w, "MY_API_KEY", key)
	w.Stdin = "---\n$status: more\nn: 1\n---\nIt is " + key + "\n"
	w.File("detail.json", `{"turns":[{"role":"assistant","content":"`+key+`"}]}`)
	step, detail := put(t, w, "--output", "-", "--detail", "detail.json")
	assert.NotContains(t, turn(w, detail, 0).Content, key)
	_, detail = put(t, w, "--output", "-")
	assert.NotContains(t, turn(w, detail, 0).Content, key)
	assert.NotContains(t, fmt.Sprint(value(t, w, step.Output)), key)
	h := w.Must("step turn --content - --tool-calls", `[{"id":"1","name":"x","args":"`+key+`"}]`)["hash"].(string)
	said := clitest.Payload[protocol.Turn](w, protocol.Hash(h))
	assert.NotContains(t, said.Content, key)
	assert.NotContains(t, fmt.Sprint(said.ToolCalls), key)
	w.Must("step extract --output -")
	assert.NotEmpty(t, *asked)
	assert.NotContains(t, *asked, key)
}
