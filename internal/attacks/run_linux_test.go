//go:build instruments

package attacks

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// way is a way to run a model's command.
type way string

const (
	commandRole way = "role"        // `run:` of a workflow
	runCommand  way = "run_command" // the tool of uwf-builtin
)

//go:embed testdata/role.yaml
var roleWorkflow string

//go:embed testdata/tool.yaml
var toolWorkflow string

// ran is the result of a run of uwf.
type ran struct {
	status         int
	stdout, stderr string
}

// confined runs a script in the workspace as a model's command.
func (w *world) confined(t *testing.T, by way, script, more string) ran {
	t.Helper()
	w.write(t, strings.TrimPrefix(w.repo, w.dir+"/")+"/got/attack.sh", script)
	config, workflow := more, roleWorkflow
	if by == runCommand {
		model := httptest.NewServer(http.HandlerFunc(scripted))
		defer model.Close()
		workflow = toolWorkflow
		config = fmt.Sprintf(`providers: { script: { baseUrl: %q } }
models: { main: { provider: script, name: scripted } }
defaultModel: main
agents: { builtin: { command: %q } }
defaultAgent: builtin
builtin: { allowCommands: ["*"] }
`, model.URL+"/v1", w.bin+"/uwf-builtin") + more
	}
	w.write(t, "home/.uwf/config.yaml", config)
	w.write(t, "run/attack.yaml", workflow)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, w.bin+"/uwf", "run", w.dir+"/run/attack.yaml", "-p", "x")
	cmd.Dir, cmd.Env = w.repo, append(w.environ(), "MY_TOKEN=canary-token")
	w.user.as(cmd)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("uwf run: %v\n%s", err, &stderr)
	}
	return ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// write creates a file of the user.
func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if w.user.uid >= 0 {
		if err := os.Chown(path, w.user.uid, w.user.uid); err != nil {
			t.Fatal(err)
		}
	}
}

// scripted acts as a model that runs the script once and is done.
func scripted(out http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil || in.Method != http.MethodPost {
		out.WriteHeader(http.StatusNotFound)
		return
	}
	var request struct {
		Stream   bool
		Messages []struct{ Role string }
	}
	if err := json.Unmarshal(body, &request); err != nil {
		out.WriteHeader(http.StatusBadRequest)
		return
	}
	var message map[string]any
	finish := "stop"
	if last := request.Messages[len(request.Messages)-1].Role; last == "tool" {
		message = map[string]any{"role": "assistant", "content": "---\n$status: done\n---\n"}
	} else {
		finish = "tool_calls"
		message = map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{
			"index": 0, "id": "c1", "type": "function",
			"function": map[string]any{"name": "run_command", "arguments": `{"command":"sh got/attack.sh","timeout":100}`},
		}}}
	}
	kind, choice := "message", map[string]any{"index": 0, "finish_reason": finish}
	if request.Stream {
		kind = "delta"
		out.Header().Set("Content-Type", "text/event-stream")
	} else {
		out.Header().Set("Content-Type", "application/json")
	}
	choice[kind] = message
	answer, err := json.Marshal(map[string]any{
		"model": "scripted", "choices": []any{choice}, "usage": map[string]any{"prompt_tokens": 1, "completion_tokens": 1},
	})
	if err != nil {
		out.WriteHeader(http.StatusInternalServerError)
		return
	}
	if request.Stream {
		fmt.Fprintf(out, "data: %s\n\ndata: [DONE]\n\n", answer)
		return
	}
	_, _ = out.Write(answer)
}

// left lists the processes of this world by their arguments, except the host program.
func (w *world) left(t *testing.T) map[int]string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(text, []byte(w.dir+"/")) || bytes.Contains(text, []byte("\x00host\x00")) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err != nil {
			continue
		}
		found[pid] = strings.ReplaceAll(string(text), "\x00", " ")
	}
	return found
}

// killLeft kills processes left by an attack.
func (w *world) killLeft(t *testing.T) {
	for range 20 { // one may have started another
		left := w.left(t)
		if len(left) == 0 {
			return
		}
		for pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("they cannot be killed: %v", w.left(t))
}
