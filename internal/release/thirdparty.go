package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// theirs contains an agent of a third party, uwf-builtin with an additional tool, and a home that uses it.
//
//go:embed thirdparty
var theirs embed.FS

// thirdParty builds that agent against the proxy and makes a step with it, using the installed uwf.
func (t *tree) thirdParty(ctx context.Context, o *outside, version string, p process) error {
	kit := t.module("github.com/united-workforce/uwf/utilagent")
	if kit == nil {
		return nil // a tree without the kit
	}
	dir := filepath.Join(o.dir, "thirdparty")
	url, stop, err := weatherModel(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for from, to := range map[string]string{"main.go.txt": "src/main.go", "ask.yaml": "ask.yaml", "config.yaml": "home/config.yaml"} {
		text, err := theirs.ReadFile("thirdparty/" + from)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, to), bytes.ReplaceAll(text, []byte("{url}"), []byte(url))); err != nil {
			return err
		}
	}
	src := filepath.Join(dir, "src")
	mod := fmt.Sprintf("module agents.example/weather\n\ngo 1.26.0\n\nrequire %s %s\n", kit.path, version)
	if err := writeFile(filepath.Join(src, "go.mod"), []byte(mod)); err != nil {
		return err
	}
	if err := o.run(ctx, p, src, "mod", "tidy"); err != nil {
		return err
	}
	bin := filepath.Join(o.dir, "bin")
	if err := o.run(ctx, p, src, "build", "-o", filepath.Join(bin, "uwf-weather"+exeSuffix())); err != nil {
		return err
	}
	if err := o.weatherStep(ctx, dir, bin); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "a third party's agent with its own tool: builds, and runs a step")
	return nil
}

func writeFile(name string, text []byte) error {
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, text, 0o600))
}

// weatherStep runs the workflow and checks for the tool's result.
func (o *outside) weatherStep(ctx context.Context, dir, bin string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "uwf"+exeSuffix()), "run", "./ask.yaml", "-p", "How is the weather in Rome?")
	cmd.Dir = dir
	cmd.Env = append(o.env[:len(o.env):len(o.env)], "UWF_HOME="+filepath.Join(dir, "home"), "OCAS_HOME=",
		"PATH="+bin+string(os.PathListSeparator)+o.lookup("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("a step with a third party's agent: %w\n%s", err, out)
	}
	if !bytes.Contains(out, []byte(`"status":"completed"`)) || !bytes.Contains(out, []byte("uwf-weather")) {
		return fmt.Errorf("a step with a third party's agent did not complete:\n%s", out)
	}
	return nil
}

// lookup returns an environment variable; the last entry applies.
func (o *outside) lookup(name string) string {
	value := ""
	for _, entry := range o.env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

// weatherModel serves a model that calls the tool and then repeats its result. It rejects a conversation
// without that result.
func weatherModel(ctx context.Context) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	var asked atomic.Int32
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		if _, err := body.ReadFrom(r.Body); err != nil {
			return // the client has disconnected
		}
		message := map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"id": "call-1", "type": "function", "function": map[string]any{"name": "weather", "arguments": `{"city":"Rome"}`}}}}
		if asked.Add(1) > 1 {
			if !strings.Contains(body.String(), "It rains in Rome.") {
				http.Error(w, `{"error":{"message":"the tool's answer is missing"}}`, http.StatusBadRequest)
				return
			}
			message = map[string]any{"role": "assistant", "content": "---\nsentence: It rains in Rome.\n---\n"}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": "stop"}}})
	})}
	go func() { _ = server.Serve(l) }() // ends when stop closes the server
	return "http://" + l.Addr().String() + "/v1", func() { _ = server.Close() }, nil
}
