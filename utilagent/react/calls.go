package react

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// runCalls answers the calls of a reply, one after the other. What the model
// must know about its limits is put into the last result: some endpoints refuse
// a user message after a tool's.
func (r *run) runCalls(ctx context.Context, calls []llm.ToolCall, cut bool) error {
	for i, call := range calls {
		result, err := r.call(ctx, call, cut)
		if err != nil {
			return err
		}
		if r.Redact != nil {
			result.Text = r.Redact(result.Text)
		}
		if i == len(calls)-1 {
			result.Text += r.notice()
		}
		if err := r.keep(ctx, llm.ToolResult(call.ID, result.Text), nil); err != nil {
			return err
		}
	}
	return nil
}

// call answers one call.
func (r *run) call(ctx context.Context, call llm.ToolCall, cut bool) (tools.Result, error) {
	args, err := llm.ParseArgs(call.Args)
	if err != nil {
		return r.guard.failed(malformed(err, cut)), nil
	}
	tool, known := r.Tools.Find(call.Name)
	if known && r.ReadOnly && tool.Spec().Effect != tools.Reads {
		return r.guard.failed(tools.Failure("only reading is possible now, so %s was not run. Write the final answer", call.Name)), nil
	}
	key := callKey(call.Name, args)
	if n := r.guard.repeats(key); n >= repeatsToStop-1 {
		return r.guard.failed(tools.Failure("not run: this same call has had the same result %d times. Do something else, or write the final answer", n)), nil
	}
	result, err := r.Tools.Call(ctx, call.Name, args)
	if err != nil {
		return tools.Result{}, err
	}
	writes := known && tool.Spec().Effect == tools.Writes
	if n := r.guard.ran(key, result, writes); n >= repeatsToWarn {
		result.Text += fmt.Sprintf("\n[The same call with the same result for the %d. time: try something else.]", n)
	}
	return result, nil
}

// malformed answers a call whose arguments make no sense.
func malformed(err error, cut bool) tools.Result {
	if cut {
		return tools.Failure("your reply was cut off at the limit for one reply, so this call was not run. Send it again with less text, for example a long file in parts")
	}
	return tools.Failure("invalid JSON arguments: %v. Send the call again with valid JSON", err)
}

// notice is what the model must know before its next reply, "" if there is
// nothing.
func (r *run) notice() string {
	if r.guard.failures >= maxFailures {
		r.stuck = true
		return fmt.Sprintf("\n[%d calls in a row have failed. No more tools: your next reply must be the final answer. Say in it what stands in the way.]", r.guard.failures)
	}
	if r.left == 1 {
		return "\n[No more tools: your next reply must be the final answer.]"
	}
	if r.left > warnTurns || r.warned {
		return ""
	}
	r.warned = true
	return fmt.Sprintf("\n[%d replies left. Come to an end and write the final answer. If the work cannot be finished, say so in it.]", r.left)
}
