package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// model describes the model to use.
type model struct {
	scripted         bool
	baseURL          string
	keyVariable      string // "": no key
	worker, reviewer string // model names
}

// realModel returns the model configured in the environment, if any.
func realModel(environ []string) (m model, found bool, err error) {
	get := func(name string) string {
		value := ""
		for _, kv := range environ {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				value = v
			}
		}
		return value
	}
	m = model{baseURL: get("UWF_DEMO_BASE_URL"), worker: get("UWF_DEMO_MODEL")}
	m.reviewer = m.worker
	if m.baseURL == "" && m.worker == "" {
		return m, false, nil
	}
	if m.baseURL == "" || m.worker == "" {
		return m, false, errors.New("for a real model set both UWF_DEMO_BASE_URL and UWF_DEMO_MODEL")
	}
	for _, name := range []string{"UWF_DEMO_API_KEY", "OPENAI_API_KEY"} {
		if get(name) != "" {
			m.keyVariable = name
			break
		}
	}
	return m, true, nil
}

// startScript starts the scripted endpoint; stop ends it.
func (d *demo) startScript(ctx context.Context) (m model, stop func() error, err error) {
	c := exec.CommandContext(ctx, filepath.Join(d.root, "bin", "endpoint"+exeSuffix()))
	c.Stderr = d.progress
	stdin, err := c.StdinPipe()
	if err != nil {
		return m, nil, err
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		return m, nil, err
	}
	if err := c.Start(); err != nil {
		return m, nil, err
	}
	stop = func() error { return errors.Join(stdin.Close(), c.Wait()) }
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return m, nil, errors.Join(fmt.Errorf("the scripted endpoint did not start: %w", err), stop())
	}
	fmt.Fprintf(d.out, "The model is a script, at %s: see examples/demo/endpoint.\n", strings.TrimSpace(url))
	return model{scripted: true, baseURL: strings.TrimSpace(url), worker: "scripted-worker", reviewer: "scripted-reviewer"}, stop, nil
}

// writeConfig creates the home with its config.yaml. Agents are configured per deployment, not in the
// workflow: the planner returns structured data, the reviewer uses another model, and roles that only discuss
// get no tools.
func (d *demo) writeConfig() error {
	key := ""
	if d.model.keyVariable != "" {
		key = "\n    apiKeyEnv: " + d.model.keyVariable
	}
	config := fmt.Sprintf(`# Made by the demo.
providers:
  demo:
    baseUrl: %s%s
models:
  worker: { provider: demo, name: %s }
  reviewer: { provider: demo, name: %s }
agents:
  builtin: { command: %[5]s }
  second-opinion: { command: %[5]s, args: [--model, reviewer] }
  react: { command: %[6]s }
  llm: { command: %[7]s }
defaultAgent: builtin
defaultModel: worker
agentOverrides:
  solve-issue: { planner: react, reviewer: second-opinion }
  debate: { for: llm, against: llm }
builtin:
  allowCommands: [go]   # what the agents may run
`, quote(d.model.baseURL), key, quote(d.model.worker), quote(d.model.reviewer), quote(d.program("uwf-builtin")),
		quote(d.program("uwf-react")), quote(d.program("uwf-llm")))
	if err := os.MkdirAll(d.home, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.home, "config.yaml"), []byte(config), 0o600)
}

// quote formats a string as YAML; any JSON string is valid YAML.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // encoding a string can't fail
	}
	return string(b)
}
