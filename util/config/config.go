// Package config reads config.yaml and .env and resolves what they say. Errors
// name the line and never hold a secret.
package config

import (
	"context"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// Load reads config.yaml. A missing file is an empty config. Every problem is
// in one *protocol.Error (code invalid) with file, line and a suggestion.
// ${VAR} is replaced in values, from environ.
func Load(ctx context.Context, path string, e env.Env) (protocol.Config, error) { panic("unwritten") }

// LoadDotEnv returns e with the variables of a .env file that e does not set.
// A missing file changes nothing.
func LoadDotEnv(path string, e env.Env) (env.Env, error) { panic("unwritten") }

// Endpoint is a resolved model.
type Endpoint struct {
	Alias, Provider, BaseURL, APIKey, Model string
	KeySource                               string // where the key came from, for error messages: "config.yaml providers.x.apiKey", "environment OPENAI_API_KEY"
	Stream                                  bool
	ContextWindow                           int
}

// ResolveModel resolves a model alias.
func ResolveModel(c protocol.Config, alias string, e env.Env) (Endpoint, error) { panic("unwritten") }

// AgentModel is the alias of the model for a role: modelOverrides
// "<workflow>.<role>", then the agent's own, then modelOverrides "agent", then
// the default model.
func AgentModel(c protocol.Config, agentAlias, workflow, role string) string { panic("unwritten") }

// ExtractModel is the alias of the model for LLM extraction, "" if it is off:
// modelOverrides.extract, else models.extract.
func ExtractModel(c protocol.Config) string { panic("unwritten") }
