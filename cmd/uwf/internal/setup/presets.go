package setup

import (
	"slices"
	"strings"
)

// Preset is an endpoint that speaks OpenAI's chat completions.
type Preset struct {
	Name    string
	Title   string
	BaseURL string
	KeyEnv  string // the variable that its users have; "": it needs no key
}

// Presets are the endpoints that setup offers, in the order of its menu.
func Presets() []Preset {
	return []Preset{
		{"openai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY"},
		{"openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"},
		{"anthropic", "Anthropic (its compatible endpoint)", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"},
		{"gemini", "Google Gemini (its compatible endpoint)", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"},
		{"deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"},
		{"groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"},
		{"mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"},
		{"ollama", "Ollama on this machine", "http://localhost:11434/v1", ""},
		{"vllm", "vLLM on this machine", "http://localhost:8000/v1", ""},
		{"lmstudio", "LM Studio on this machine", "http://localhost:1234/v1", ""},
		{"xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY"},
		{"venice", "Venice", "https://api.venice.ai/api/v1", "VENICE_API_KEY"},
		{"dashscope", "DashScope", "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"},
		{"siliconflow", "SiliconFlow", "https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY"},
		{"volcengine", "Volcengine", "https://ark.cn-beijing.volces.com/api/v3", "ARK_API_KEY"},
		{"kimi", "Kimi", "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY"},
		{"glm", "GLM", "https://open.bigmodel.cn/api/paas/v4", "ZHIPUAI_API_KEY"},
		{"stepfun", "StepFun", "https://api.stepfun.com/v1", "STEPFUN_API_KEY"},
		{"minimax", "MiniMax", "https://api.minimax.io/v1", "MINIMAX_API_KEY"},
	}
}

// preset finds an endpoint by name.
func preset(name string) (Preset, bool) {
	all := Presets()
	i := slices.IndexFunc(all, func(p Preset) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		return Preset{}, false
	}
	return all[i], true
}

// PresetNames are the names of all, for help and suggestions.
func PresetNames() []string {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}
