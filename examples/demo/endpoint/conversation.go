package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// request is what the script needs of a request.
type request struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Tools  []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// conversation is where a request stands in the script.
type conversation struct {
	role    string   // that the agent plays
	tools   []string // that it has
	asked   string   // the last that the agent was told
	told    string   // all that it was told
	visit   int      // from 1: how often it has been asked to
	turn    int      // from 0: how often it has answered since
	results []string // of the tools it has called since
}

var roleName = regexp.MustCompile(`You play the role "(\w+)"`)

// read finds out where a conversation stands.
func read(r request) (conversation, error) {
	var c conversation
	for _, t := range r.Tools {
		c.tools = append(c.tools, t.Function.Name)
	}
	for _, m := range r.Messages {
		var content string
		_ = json.Unmarshal(m.Content, &content) // null for a message with calls only
		switch m.Role {
		case "system":
			if found := roleName.FindStringSubmatch(content); found != nil {
				c.role = found[1]
			}
		case "user":
			c.visit++
			c.turn, c.results, c.asked = 0, nil, content
			c.told += content + "\n"
		case "assistant":
			c.turn++
		case "tool":
			c.results = append(c.results, content)
		}
	}
	if c.role == "" || c.visit == 0 {
		return c, fmt.Errorf("this endpoint only plays the script of the uwf demo: it needs a conversation of one of uwf's own agents in a role of the examples")
	}
	return c, nil
}

// testResult is the last line of the last test run, as go prints it.
func (c conversation) testResult() string {
	for i := len(c.results) - 1; i >= 0; i-- {
		for line := range strings.Lines(c.results[i]) {
			if strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "FAIL\t") {
				return strings.Join(strings.Fields(line), " ")
			}
		}
	}
	return "the tests did not run"
}

// has reports whether the agent has a tool.
func (c conversation) has(tool string) bool { return slices.Contains(c.tools, tool) }

// lastResult is what the last tool call has led to.
func (c conversation) lastResult() string {
	if len(c.results) == 0 {
		return ""
	}
	return c.results[len(c.results)-1]
}

// passed reports whether the last test run was green.
func (c conversation) passed() bool { return strings.HasPrefix(c.testResult(), "ok ") }
