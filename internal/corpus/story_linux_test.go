package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// story runs the commands of one home, with its variables.
type story struct {
	dir  string // directory of the home, below root
	vars map[string]string
}

// newStory reads the variables stored with the home.
func newStory(name string) (*story, error) {
	s := &story{filepath.Join(root, name), map[string]string{}}
	text, err := os.ReadFile(filepath.Join(s.dir, "vars"))
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			s.vars[key] = value
		}
	}
	return s, err
}

// environ returns the environment of every command, with nothing of the machine except its programs.
func (s *story) environ() []string {
	return []string{
		"PATH=" + filepath.Join(root, "bin") + ":" + os.Getenv("PATH"),
		"HOME=" + s.dir, "UWF_HOME=" + s.dir + "/home", "TMPDIR=" + s.dir + "/tmp", "WORK=" + s.dir,
		"GIT_CONFIG_GLOBAL=" + s.dir + "/gitconfig", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "TZ=UTC",
	}
}

// run runs one command and returns its result as JSON: {exit, code, out}.
func (s *story) run(ctx context.Context, r result, line string) (any, error) {
	words, err := split(line)
	if err != nil {
		return nil, err
	}
	for i := range words {
		words[i] = os.Expand(words[i], s.value)
	}
	for {
		got, err := s.once(ctx, r, words)
		if err != nil || r.Retry == 0 || got["exit"] != json.Number(strconv.Itoa(r.Retry)) {
			return got, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// value returns a variable's value; other names, such as $status, stay as they are.
func (s *story) value(name string) string {
	if v, ok := s.vars[name]; ok {
		return v
	}
	switch name {
	case "WORK":
		return s.dir
	case "STORE":
		return s.dir + "/home/cas"
	}
	return "$" + name
}

func (s *story) once(ctx context.Context, r result, words []string) (map[string]any, error) {
	program := words[0]
	if local := filepath.Join(root, "bin", program); exists(local) {
		program = local
	}
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, program, words[1:]...)
	cmd.Dir, cmd.Env = s.dir+"/work", s.environ()
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		cmd.Env = append(cmd.Env, name+"="+os.Expand(r.Env[name], s.value))
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 10 * time.Second
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w", words, err)
	}
	got := map[string]any{"exit": json.Number(strconv.Itoa(cmd.ProcessState.ExitCode())), "out": decode(stdout.Bytes())}
	if code := errorCode(stderr.String()); code != "" {
		got["code"] = code
	}
	if os.Getenv("CORPUS_STDERR") != "" && stderr.Len() > 0 {
		fmt.Fprintf(os.Stderr, "%s\n%s\n", words, stderr.String())
	}
	return got, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// remember sets the variables from a result.
func (s *story) remember(r result, got any) {
	for name, path := range r.Set {
		v := got.(map[string]any)["out"]
		for _, key := range strings.Split(path, ".") {
			switch node := v.(type) {
			case map[string]any:
				v = node[key]
			case []any:
				if i, err := strconv.Atoi(key); err == nil && i < len(node) {
					v = node[i]
				}
			}
		}
		s.vars[name] = fmt.Sprint(v)
	}
}

// decode parses an output: one JSON value, several lines of JSON, or a text.
func decode(text []byte) any {
	var values []any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		var v any
		err := d.Decode(&v)
		if err != nil {
			if len(values) == 0 || !errors.Is(err, io.EOF) {
				return printable(text)
			}
			break
		}
		values = append(values, v)
	}
	if len(values) == 1 {
		return prose("", values[0])
	}
	return prose("", any(values))
}

func printable(text []byte) any {
	if !utf8.Valid(text) {
		return short(string(text))
	}
	return strings.TrimRight(string(text), "\n")
}

// errorCode returns the code of the error that a command has printed.
func errorCode(stderr string) string {
	for _, line := range strings.Split(stderr, "\n") {
		var printed struct {
			Error struct {
				Code    string
				Machine bool
			}
		}
		if json.Unmarshal([]byte(line), &printed) == nil && printed.Error.Code != "" {
			return printed.Error.Code
		}
	}
	return ""
}

// advice lists the keys of prose: only their presence is compared.
var advice = []string{"do", "what", "message", "remedy", "text"}

// prose removes prose for people, hints, findings and error messages, and the paths of the machine's
// programs.
func prose(within string, v any) any {
	switch v := v.(type) {
	case []any:
		v = slices.DeleteFunc(v, ofMachine)
		for i := range v {
			v[i] = prose(within, v[i])
		}
		if within == "errors" { // of a workflow: problems contains them, with their positions
			return "‹text›"
		}
		return v
	case map[string]any:
		for key, value := range v {
			within := slices.Contains([]string{"findings", "faults", "error", "problems"}, within)
			sentence := key == "hint" || within && slices.Contains(advice, key)
			if _, ok := value.(string); ok && sentence {
				v[key] = "‹text›"
				continue
			}
			if text, ok := value.(string); ok && key == "path" && filepath.IsAbs(text) && !strings.HasPrefix(text, root) {
				v[key] = "…/" + filepath.Base(text) // a program of the machine
				continue
			}
			v[key] = prose(key, value)
		}
	}
	return v
}

// ofMachine reports whether a finding of doctor concerns the machine, not the home.
func ofMachine(v any) bool {
	finding, _ := v.(map[string]any)
	area, ok := finding["area"]
	return ok && !slices.Contains([]any{"threads", "config", "store"}, area)
}
