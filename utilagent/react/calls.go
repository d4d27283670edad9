package react

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// atOnce is how many reading calls run side by side at most.
const atOnce = 8

// runCalls answers the calls of a reply, in order: those that only read side by
// side, all others one after the other. What the model must know about its limits is
// put into the last result: some endpoints refuse a user message after a tool's. It
// reports whether the run is over.
func (r *run) runCalls(ctx context.Context, calls []llm.ToolCall, cut, final bool) (done bool, err error) {
	for at := 0; at < len(calls); {
		results, err := r.next(ctx, calls[at:], cut, final)
		if err != nil {
			return false, err
		}
		for _, result := range results {
			text := result.Text
			if r.Redact != nil {
				text = r.Redact(text)
			}
			text = r.window.clip(text, len(calls))
			if at == len(calls)-1 && r.answer.Outcome == "" {
				text += r.notice()
			}
			if err := r.keep(ctx, llm.ToolResult(calls[at].ID, text), nil); err != nil {
				return false, err
			}
			at++
		}
	}
	if r.answer.Outcome == "" && final {
		r.answer.Outcome = r.why
	}
	return r.answer.Outcome != "", nil
}

// next answers the first call, and those after it that can run beside it.
func (r *run) next(ctx context.Context, calls []llm.ToolCall, cut, final bool) ([]tools.Result, error) {
	if read := r.reading(calls); len(read) > 1 && !final {
		return r.sideBySide(ctx, read)
	}
	result, err := r.call(ctx, calls[0], cut, final)
	return []tools.Result{result}, err
}

// reading are the calls at the beginning of a list that may run side by side. A call
// that is there already must wait for the result of the first: see [guard].
func (r *run) reading(calls []llm.ToolCall) (list []reading) {
	for _, call := range calls[:min(len(calls), atOnce)] {
		args, err := llm.ParseArgs(call.Args)
		tool, known := r.Tools.Find(call.Name)
		if err != nil || !known || tool.Spec().Effect != tools.Reads || !tool.Spec().SideBySide {
			break
		}
		key := callKey(call.Name, args)
		if r.guard.refuse(key) != "" || slices.ContainsFunc(list, func(c reading) bool { return c.key == key }) {
			break
		}
		list = append(list, reading{call.Name, key, args})
	}
	return list
}

// reading is a call that changes nothing.
type reading struct {
	name, key string
	args      map[string]any
}

func (r *run) sideBySide(ctx context.Context, calls []reading) ([]tools.Result, error) {
	results, errs := make([]tools.Result, len(calls)), make([]error, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() { results[i], errs[i] = r.Tools.Call(ctx, c.name, c.args) })
	}
	all.Wait()
	for i, c := range calls {
		if errs[i] != nil {
			return nil, errs[i] // the end of ctx, the same for all
		}
		results[i].Text += r.guard.ran(c.key, results[i], false)
	}
	return results, nil
}

// call answers one call.
func (r *run) call(ctx context.Context, call llm.ToolCall, cut, final bool) (tools.Result, error) {
	args, err := llm.ParseArgs(call.Args)
	if err != nil {
		return r.guard.failed(malformed(err, cut)), nil
	}
	if r.Resolve != nil && r.isResolve(call.Name) {
		return r.resolved(ctx, args)
	}
	if final {
		return r.onlyResolve(call.Name), nil
	}
	tool, known := r.Tools.Find(call.Name)
	if known && r.ReadOnly && tool.Spec().Effect != tools.Reads {
		return r.guard.failed(tools.Failure("only reading is possible now, so %s was not run. Write the final answer", call.Name)), nil
	}
	key := callKey(call.Name, args)
	if why := r.guard.refuse(key); why != "" {
		return r.guard.failed(tools.Failure("%s", why)), nil
	}
	result, err := r.Tools.Call(ctx, call.Name, args)
	if err != nil {
		return tools.Result{}, err
	}
	writes := known && tool.Spec().Effect == tools.Writes
	result.Text += r.guard.ran(key, result, writes)
	return result, nil
}

// isResolve knows the tool by the names that models use for it.
func (r *run) isResolve(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name == ResolveTool || strings.HasSuffix(name, "."+ResolveTool)
}

// malformed answers a call whose arguments make no sense.
func malformed(err error, cut bool) tools.Result {
	if cut {
		return tools.Failure("your reply was cut off at the limit for one reply, so this call was not run. Send it again with less text, for example a long file in parts")
	}
	return tools.Failure("%s", fmt.Sprintf("invalid JSON arguments: %v. Send the call again with valid JSON", err))
}
