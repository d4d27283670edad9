package mock

import (
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Parse reads a scenario. The error names the file, and every mistake with its
// place. The original's files ({steps: [{role, output}]}) are scenarios.
func Parse(file string, src []byte) (Scenario, error) {
	r := &reader{file: file}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{Bytes: 16 << 20})
	if err == nil {
		if bad := doc.Root.Rounded(); bad != nil {
			err = bad
		}
	}
	if err != nil {
		return Scenario{}, &FileError{File: file, Err: err}
	}
	var s Scenario
	if doc.Root.Get("steps") == nil && doc.Root.Get("roles") == nil {
		r.fail(doc.Root.Pos, "mock data must be a mapping with a 'steps' list, or with 'roles'")
		return s, r.err()
	}
	r.mapping(doc.Root, "a scenario", map[string]func(*yamldoc.Node){
		"repeat": r.flag(&s.Repeat),
		"steps":  func(n *yamldoc.Node) { s.Steps = r.steps(n, "steps") },
		"roles":  func(n *yamldoc.Node) { s.Roles = r.roles(n) },
	})
	return s, r.err()
}

// FileError is a problem with a scenario file as a whole.
type FileError struct {
	File string
	Err  error
}

// Error implements error.
func (e *FileError) Error() string { return "mock scenario " + e.File + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

func (r *reader) steps(n *yamldoc.Node, what string) (list []Step) {
	r.list(n, what, func(item *yamldoc.Node) { list = append(list, r.step(item)) })
	return list
}

// roles are lists of steps by role.
func (r *reader) roles(n *yamldoc.Node) map[string][]Step {
	if n.Kind != yamldoc.Mapping {
		r.fail(n.Pos, "roles must be a mapping from role to a list of steps")
		return nil
	}
	roles := map[string][]Step{}
	for _, f := range n.Entries {
		roles[f.Key] = r.steps(f.Value, "the steps of role "+f.Key)
	}
	return roles
}

func (r *reader) step(n *yamldoc.Node) Step {
	var s Step
	keys := map[string]func(*yamldoc.Node){
		"role":    r.text(&s.Role),
		"session": r.text(&s.Session),
		"corrections": func(n *yamldoc.Node) {
			r.list(n, "corrections", func(item *yamldoc.Node) { s.Corrections = append(s.Corrections, r.correction(item)) })
		},
		"files": func(n *yamldoc.Node) { s.Files = r.files(n) },
	}
	maps.Copy(keys, r.replyKeys(&s.Reply))
	maps.Copy(keys, r.faultKeys(&s.Faults))
	r.mapping(n, "a step", keys)
	// Crashing or hanging for good leaves nothing to answer.
	r.oneAnswer(n, s.Reply, s.Crash == CrashAtStart || s.Hang)
	return s
}

// correction is a reply, or only its output.
func (r *reader) correction(n *yamldoc.Node) Reply {
	var reply Reply
	if n.Kind == yamldoc.Scalar {
		r.optionalText(&reply.Output)(n)
		return reply
	}
	r.mapping(n, "a correction", r.replyKeys(&reply))
	r.oneAnswer(n, reply, false)
	return reply
}

func (r *reader) replyKeys(reply *Reply) map[string]func(*yamldoc.Node) {
	return map[string]func(*yamldoc.Node){
		"output":  r.optionalText(&reply.Output),
		"value":   r.value(&reply.Value),
		"suspend": r.text(&reply.Suspend),
		"fail":    r.text(&reply.Fail),
		"delay":   r.duration(&reply.Delay),
		"usage":   func(n *yamldoc.Node) { reply.Usage = r.usage(n) },
		"turns": func(n *yamldoc.Node) {
			r.list(n, "turns", func(item *yamldoc.Node) { reply.Turns = append(reply.Turns, r.turn(item)) })
		},
	}
}

// oneAnswer reports a reply that says nothing, or more than one thing.
func (r *reader) oneAnswer(n *yamldoc.Node, reply Reply, mayBeNone bool) {
	if n.Kind != yamldoc.Mapping {
		return // reported already
	}
	answers := 0
	for _, key := range []string{"output", "value", "suspend", "fail"} {
		if n.Get(key) != nil {
			answers++
		}
	}
	if answers > 1 || answers == 0 && !mayBeNone {
		r.fail(n.Pos, "want exactly one of output, value, suspend and fail")
	}
	if n.Get("value") != nil && reply.Value == nil {
		r.fail(n.Get("value").Pos, "value must not be null")
	}
}

func (r *reader) turn(n *yamldoc.Node) Turn {
	var t Turn
	r.mapping(n, "a turn", map[string]func(*yamldoc.Node){
		"say": r.text(&t.Say), "tool": r.text(&t.Tool), "args": r.value(&t.Args),
		"result": r.text(&t.Result), "delay": r.duration(&t.Delay),
	})
	if n.Kind == yamldoc.Mapping && t.Say == "" && t.Tool == "" {
		r.fail(n.Pos, "a turn says something (say) or calls a tool (tool, args, result)")
	}
	return t
}

func (r *reader) files(n *yamldoc.Node) []File {
	if n.Kind != yamldoc.Mapping {
		r.fail(n.Pos, "files must be a mapping from path to content")
		return nil
	}
	var files []File
	for _, e := range n.Entries {
		f := File{Path: e.Text}
		r.text(&f.Content)(e.Value)
		files = append(files, f)
	}
	return files
}

func (r *reader) usage(n *yamldoc.Node) *protocol.Usage {
	var u protocol.Usage
	var turns int64
	r.mapping(n, "usage", map[string]func(*yamldoc.Node){
		"turns": r.natural(&turns), "inputTokens": r.natural(&u.InputTokens), "outputTokens": r.natural(&u.OutputTokens),
		"cacheReadTokens": r.natural(&u.CacheReadTokens), "cacheWriteTokens": r.natural(&u.CacheWriteTokens),
		"reasoningTokens": r.natural(&u.ReasoningTokens), "durationMs": r.natural(&u.DurationMs),
		"costUsd": func(n *yamldoc.Node) { u.CostUSD = r.cost(n) },
	})
	u.Turns = int(turns)
	return &u
}

func (r *reader) cost(n *yamldoc.Node) *float64 {
	switch v := n.Scalar.(type) {
	case int64:
		cost := float64(v)
		return &cost
	case float64:
		return &v
	}
	r.fail(n.Pos, "want a number")
	return nil
}

func (r *reader) faultKeys(f *Faults) map[string]func(*yamldoc.Node) {
	return map[string]func(*yamldoc.Node){
		"stdout":      r.text(&f.Stdout),
		"stderr":      r.text(&f.Stderr),
		"stdoutBytes": r.natural(&f.StdoutBytes),
		"hang":        r.flag(&f.Hang),
		"deaf":        r.flag(&f.Deaf),
		"resultLine":  r.optionalText(&f.ResultLine),
		"crash":       func(n *yamldoc.Node) { f.Crash = r.crash(n) },
		"exit": func(n *yamldoc.Node) {
			var status int64
			r.natural(&status)(n)
			code := int(status)
			f.Exit = &code
		},
		"grandchild": func(n *yamldoc.Node) {
			if n.Kind == yamldoc.Scalar {
				r.duration(&f.Grandchild.For)(n)
				return
			}
			r.mapping(n, "a grandchild", map[string]func(*yamldoc.Node){
				"for": r.duration(&f.Grandchild.For), "pidFile": r.text(&f.Grandchild.PidFile),
			})
		},
	}
}

func (r *reader) crash(n *yamldoc.Node) Crash {
	points := []Crash{CrashAtStart, CrashBeforeCommit, CrashAfterCommit, CrashAfterResult}
	if slices.Contains(points, Crash(n.Text)) {
		return Crash(n.Text)
	}
	names := make([]string, len(points))
	for i, p := range points {
		names[i] = string(p)
	}
	r.fail(n.Pos, "crash must be one of %s", strings.Join(names, ", "))
	return ""
}
