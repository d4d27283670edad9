package react

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// runCalls answers the calls of a reply, one after the other. What the model
// must know about its limits is put into the last result: some endpoints refuse
// a user message after a tool's. It reports whether the run is over.
func (r *run) runCalls(ctx context.Context, calls []llm.ToolCall, cut, final bool) (done bool, err error) {
	for i, call := range calls {
		result, err := r.call(ctx, call, cut, final)
		if err != nil {
			return false, err
		}
		if r.Redact != nil {
			result.Text = r.Redact(result.Text)
		}
		result.Text = r.window.clip(result.Text)
		if i == len(calls)-1 && r.answer.Outcome == "" {
			r.window.expect(len(result.Text))
			if err := r.makeRoom(); err != nil {
				return false, err
			}
			result.Text += r.notice()
		}
		if err := r.keep(ctx, llm.ToolResult(call.ID, result.Text), nil); err != nil {
			return false, err
		}
	}
	if r.answer.Outcome == "" && final {
		r.answer.Outcome = r.why
	}
	return r.answer.Outcome != "", nil
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
