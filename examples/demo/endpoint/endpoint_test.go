package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type message = map[string]any

// ask sends a conversation and returns the answer as one message.
func ask(t *testing.T, url string, stream bool, messages []message) message {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "m", "stream": stream, "messages": messages})
	require.NoError(t, err)
	res, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, 200, res.StatusCode)
	if !stream {
		var whole struct {
			Choices []struct{ Message message }
		}
		require.NoError(t, json.NewDecoder(res.Body).Decode(&whole))
		return whole.Choices[0].Message
	}
	return collect(t, res.Body)
}

// collect joins the pieces of a stream.
func collect(t *testing.T, r io.Reader) message {
	t.Helper()
	text, args, names := "", map[int]string{}, map[int]string{}
	done := false
	for s := bufio.NewScanner(r); s.Scan(); {
		data, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok || data == "[DONE]" {
			done = done || ok
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct {
						Index    int
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(data), &chunk))
		for _, c := range chunk.Choices {
			text += c.Delta.Content
			for _, call := range c.Delta.ToolCalls {
				names[call.Index] += call.Function.Name
				args[call.Index] += call.Function.Arguments
			}
		}
	}
	require.True(t, done)
	m := message{"role": "assistant", "content": text}
	var calls []any
	for i := range len(names) {
		calls = append(calls, map[string]any{"id": callID(i), "type": "function", "function": map[string]any{"name": names[i], "arguments": args[i]}})
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	return m
}

// play answers calls with result until the model ends the visit.
func play(t *testing.T, url string, messages []message, result string) []message {
	t.Helper()
	for range 20 {
		answer := ask(t, url, true, messages)
		require.Equal(t, answer["content"], ask(t, url, false, messages)["content"], "streamed or not, it says the same")
		messages = append(messages, answer)
		calls, _ := answer["tool_calls"].([]any)
		if len(calls) == 0 {
			return messages
		}
		for _, call := range calls {
			messages = append(messages, message{"role": "tool", "tool_call_id": call.(map[string]any)["id"], "content": result})
		}
	}
	t.Fatal("the visit does not end")
	return nil
}

func TestEveryVisitEndsWithAnAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(handler())
	t.Cleanup(server.Close)
	want := map[string][]string{
		"planner": {"ready"}, "developer": {"done", "done"}, "reviewer": {"rejected", "approved"},
		"reader": {"clean"}, "judge": {"change"}, "for": {"argued"}, "against": {"argued", "conceded"},
		"researcher": {"offline"}, "checker": {"holds"},
	}
	for role, statuses := range want {
		messages := []message{{"role": "system", "content": fmt.Sprintf("You play the role %q of the workflow", role)}}
		for _, status := range statuses {
			messages = append(messages, message{"role": "user", "content": "go"})
			messages = play(t, server.URL, messages, "ok  \texample.com/stats\t0.002s\n[exit 0]")
			require.True(t, strings.HasPrefix(messages[len(messages)-1]["content"].(string), "---\n$status: "+status+"\n"), role)
		}
	}
}

// An agent that ends with structured data gets a call as its answer.
func TestDataIsHandedIn(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(handler())
	t.Cleanup(server.Close)
	body := `{"messages":[{"role":"system","content":"You play the role \"judge\""},{"role":"user","content":"u"}],"tools":[{"function":{"name":"resolve"}}]}`
	res, err := http.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Contains(t, string(text), `"name":"resolve"`)
	require.Contains(t, string(text), `\"$status\":\"change\"`)
}

// If the tests fail, the reviewer rejects even where the script would approve.
func TestReviewerLooksAtTheTests(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(handler())
	t.Cleanup(server.Close)
	messages := []message{{"role": "system", "content": `You play the role "reviewer"`}, {"role": "user", "content": "a"}, {"role": "user", "content": "b"}}
	messages = play(t, server.URL, messages, "FAIL\texample.com/stats\t0.002s\nFAIL\n[exit 1]")
	require.Contains(t, messages[len(messages)-1]["content"], "$status: rejected\ncomments: [\"the tests do not pass: FAIL example.com/stats 0.002s\"]")
}

// It never passes for a model.
func TestOthersAreTurnedAway(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(handler())
	t.Cleanup(server.Close)
	for _, system := range []string{"You are helpful.", `You play the role "poet"`} {
		body := fmt.Sprintf(`{"messages":[{"role":"system","content":%q},{"role":"user","content":"u"}]}`, system)
		res, err := http.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, 400, res.StatusCode)
		require.Contains(t, string(text), "demo")
	}
}

func TestEndsWithItsInput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, serve(strings.NewReader(""), &out))
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/v1\n$`, out.String())
}
