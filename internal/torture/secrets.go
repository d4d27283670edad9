package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// keys returns secrets by the source from which uwf knows them.
func keys() map[string]string {
	return map[string]string{
		"config.yaml": "sk-torture-in-the-config-0123456789abcdef",
		"environment": "sk-torture-in-the-environment-0123456789",
		".env":        "sk-torture-in-dot-env-0123456789abcdefgh",
	}
}

// Variables with other secrets, in .env, in the environment, and of an agent in the config.
const (
	torturedDotEnv  = "AWS_SECRET_ACCESS_KEY=wJalr/tortureXUtnFEMI\nDATABASE_URL=postgres://app:torture-hunter2@db/x\nODD=x9TortureAbC1dE2fG3\n"
	torturedEnviron = "GH_TOKEN=ghp_torture0123456789abcdef"
	torturedAgent   = "MY_TOKEN: torture-token-of-an-agent"
)

// others returns those secrets.
func others() []string {
	return []string{
		"wJalr/tortureXUtnFEMI", "torture-hunter2", "x9TortureAbC1dE2fG3", "ghp_torture0123456789abcdef", "torture-token-of-an-agent",
	}
}

// told returns a key and all other secrets, as a model might reveal them.
func told(key string) string {
	all := strings.Join(append(others(), key), " ")
	return key + " " + all + " " + base64.StdEncoding.EncodeToString([]byte(all)) + " " + url.QueryEscape(all)
}

// traces returns the texts that must appear nowhere: secrets, and pieces of their base64 encodings.
func traces(key string) []string {
	var list []string
	for _, s := range append(others(), key) {
		list = append(list, s, url.QueryEscape(s))
		for before := range 3 {
			encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + s))
			list = append(list, encoded[4:12]) // depends only on the secret, and contains no line break
		}
	}
	return list
}

// secrets runs steps with a model that reveals the keys it was sent, in every part of an answer, and searches
// for them in everything stored and printed.
func secrets(ctx context.Context, t *trial) error {
	for t.rounds == 0 || t.time(ctx) {
		for _, behaviour := range behaviours() {
			for _, source := range slices.Sorted(maps.Keys(keys())) {
				if t.over(ctx) {
					break
				}
				if err := t.leak(ctx, behaviour, source); err != nil {
					return fmt.Errorf("key from %s, the endpoint %s: %w", source, behaviour.name, err)
				}
				t.rounds++
			}
		}
	}
	t.note("%d behaviours of an endpoint, keys from %d places", len(behaviours()), len(keys()))
	return nil
}

// behaviour is a way in which a model's endpoint reveals a key.
type behaviour struct {
	name   string
	answer func(w http.ResponseWriter, key string)
}

func behaviours() []behaviour {
	return []behaviour{
		{"says it in its answer", func(w http.ResponseWriter, key string) {
			say(w, map[string]any{"role": "assistant", "content": "---\n$status: again\nnote: it is " + key + "\n---\nYour key is " + key + ".\n"})
		}},
		{"calls a tool with it", func(w http.ResponseWriter, key string) {
			use(w, call{"read_file", map[string]string{"path": "note-" + key, "content": key}, key})
		}},
		{"refuses it and repeats it", func(w http.ResponseWriter, key string) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","code":"%s"}}`, key, key)
		}},
		{"fails with a page that shows it", func(w http.ResponseWriter, key string) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, "<html><pre>Authorization: Bearer %s</pre></html>", key)
		}},
		{"runs commands that show it", func(w http.ResponseWriter, _ string) {
			use(w, call{"run_command", map[string]string{"command": `env; cat "$UWF_HOME/.env" "$UWF_HOME/config.yaml"; base64 "$UWF_HOME/.env"`}, ""})
		}},
		{"answers nonsense that holds it", func(w http.ResponseWriter, key string) { fmt.Fprintf(w, "%s {", key) }},
	}
}

// call is a tool call.
type call struct {
	tool string
	args map[string]string
	id   string
}

// use responds with tool calls.
func use(w http.ResponseWriter, calls ...call) {
	var list []any
	for i, c := range calls {
		args, _ := json.Marshal(c.args) // strings can always be encoded
		list = append(list, map[string]any{"id": fmt.Sprintf("call-%d-%s", i+1, c.id), "type": "function", "function": map[string]any{"name": c.tool, "arguments": string(args)}})
	}
	say(w, map[string]any{"role": "assistant", "content": nil, "tool_calls": list})
}

// say responds to a chat completion.
func say(w http.ResponseWriter, message map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	body, err := json.Marshal(map[string]any{"id": "x", "choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": "stop"}}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(body) // the client may have disconnected
}

// leak runs one step and searches for the key.
func (t *trial) leak(ctx context.Context, b behaviour, source string) error {
	w, err := t.world()
	if err != nil {
		return err
	}
	url, answers, stop, err := serve(ctx, b)
	if err != nil {
		return err
	}
	defer stop()
	key := keys()[source]
	w.env = append(slices.Clone(w.env), torturedEnviron, "UWF_BUILTIN_ALLOW_SHELL=1")
	if err := w.keyFrom(source, key, url); err != nil {
		return err
	}
	id, err := w.started(ctx)
	if err != nil {
		return err
	}
	shows := func(args ...string) error {
		e, err := w.uwf(ctx, args...)
		if err != nil {
			return err
		}
		for _, trace := range traces(key) {
			if bytes.Contains(e.Stdout, []byte(trace)) || strings.Contains(e.Stderr, trace) {
				return fmt.Errorf("printed %q: %s", trace, e)
			}
		}
		return nil
	}
	// Some behaviors are retried, and a busy machine takes its time until the first answer, without which
	// there is nothing to reveal.
	limit := 3 * time.Second
	step := func() error {
		return shows("thread", "step", id, "--agent", filepath.Join(w.bin, "uwf-builtin"), "--timeout", limit.String())
	}
	for ; answers.Load() == 0; limit *= 2 {
		if limit > patience {
			return errors.New("the model is never asked")
		}
		if err := step(); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"thread", "read", id}, {"thread", "show", id}, {"thread", "steps", id}, {"thread", "list", "--all"}} {
		if err := shows(args...); err != nil {
			return err
		}
	}
	if err := step(); err != nil {
		return err
	}
	if err := w.holdsNot(traces(key)); err != nil {
		return err
	}
	return removeAll(w.dir)
}

// keyFrom stores a key as its owner would, and configures a model with it.
func (w *world) keyFrom(source, key, url string) error {
	config := "providers:\n  local: { baseUrl: \"" + url + "/v1\", %s }\nmodels:\n  m: { provider: local, name: m }\ndefaultModel: m\n" +
		"agents: { other: { command: x, env: { " + torturedAgent + " } } }\n"
	dotEnv := torturedDotEnv
	name := "apiKeyEnv: TORTURE_API_KEY"
	switch source {
	case "config.yaml":
		name = "apiKey: " + key
	case "environment":
		w.env = append(slices.Clone(w.env), "TORTURE_API_KEY="+key)
	case ".env":
		dotEnv += "TORTURE_API_KEY=" + key + "\n"
	}
	if err := os.WriteFile(filepath.Join(w.home, ".env"), []byte(dotEnv), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.home, "config.yaml"), fmt.Appendf(nil, config, name), 0o600)
}

// holdsNot searches for texts in the names and contents of everything in the world, except in the two files
// in which their owner stored them.
func (w *world) holdsNot(traces []string) error {
	return filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		for _, trace := range traces {
			if strings.Contains(d.Name(), trace) {
				return fmt.Errorf("%q in the name of %s", trace, path)
			}
		}
		owners := path == filepath.Join(w.home, "config.yaml") || path == filepath.Join(w.home, ".env")
		if owners || !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, trace := range traces {
			if bytes.Contains(data, []byte(trace)) {
				return fmt.Errorf("%q in the content of %s", trace, path)
			}
		}
		return nil
	})
}

// serve runs the endpoint and counts its answers.
func serve(ctx context.Context, b behaviour) (url string, answers *atomic.Int64, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, nil, err
	}
	answers = new(atomic.Int64)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a client may disconnect
		b.answer(w, told(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
		answers.Add(1)
	})}
	go func() { _ = server.Serve(l) }() // ends when stop closes the server
	return "http://" + l.Addr().String(), answers, func() { _ = server.Close() }, nil
}
