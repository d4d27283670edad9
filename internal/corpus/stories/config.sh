# A config with many keys, that of a project, and workflows of a project before registered ones.
cat >"$UWF_HOME/config.yaml" <<EOF
# A comment that stays.
providers:
  openai: { baseUrl: https://api.openai.example/v1, apiKeyEnv: OPENAI_API_KEY }
  local: { baseUrl: "http://127.0.0.1:1/v1", apiKey: "\${LOCAL_KEY}" }
models:
  big: { provider: openai, name: gpt-5, contextWindow: 128000, price: { input: 2.5, output: 10, cacheRead: 0.25 } }
  small: { provider: local, name: qwen3, stream: false, idleTimeout: 90s, cacheControl: "off" }
defaultModel: big
modelOverrides: { solve.checker: small, extract: "off" }
agents:
  mock: { command: $WORK/agent, args: ["--role-file", x], timeout: 20m, env: { A: b }, passEnv: [TOKEN], retry: { attempts: 2, backoff: 10ms, on: [rate-limit, server, crash, timeout] } }
  claude: { command: uwf-claude-code, permission: edits, model: opus, resume: false, maxTurns: 12, maxCostUsd: 1.5, startTimeout: 2m, idleTimeout: 5m, account: team,
    onLimit: fallback, fallback: [mock], fallbackOn: [rate-limit, server], maxPark: 8h, confine: required, allowRead: [/opt/data], allowWrite: [/opt/cache], ipc: true }
defaultAgent: mock
agentOverrides: { solve: { checker: claude } }
limits: { maxSteps: 30, maxVisitsPerRole: 9, maxCostUsd: 12.5, maxTokens: 100000, maxTime: 2h }
timeout: 45m
concurrency: { team: 2 }
allowLocations: [/opt]
commands: { confine: off }
workspace: { default: here, perWorkflow: { solve: none }, maxFile: 7, link: [node_modules], setup: ["true"] }
notify:
  on: [waiting, failed, ended, budget]
  command: ["true"]
  links: { address: "https://uwf.example.org", ends: 12h }
builtin: { allowCommands: [go, git], allowWrite: [/opt/cache], hide: [secret], caches: user, confine: auto, instructions: "off", allowFetch: true, allowPrivate: false,
  maxTurns: 40, maxContinueTurns: 3, maxTokens: 9000, maxCostUsd: 2, maxTime: 30m }
EOF
printf 'LOCAL_KEY=a-key-of-somebody-1234567890\nTOKEN=t0ken-of-somebody-1234567890\n' >"$UWF_HOME/.env"
chmod 600 "$UWF_HOME/.env"
mkdir -p .workflow .workflows .uwf sub
for dir in . .workflow .workflows; do
	cat >"$dir/solve.yaml" <<-EOF
		name: solve
		description: That of $dir.
		roles:
		  worker: { description: Works., goal: Work., frontmatter: { type: object, properties: { n: { type: integer } }, required: [n] } }
		  checker: { description: Checks., run: [echo, checked] }
		graph:
		  \$START: { _: worker }
		  worker: { _: checker }
		  checker: { passed: \$END, failed: \$END }
	EOF
done
mv solve.yaml registered.yaml
sed 's/^name: solve/name: registered/' -i registered.yaml
sed 's/^name: solve/name: other/' .workflows/solve.yaml >.workflows/other.yaml
cat >.uwf/config.yaml <<'EOF'
agents:
  claude: { permission: readonly, timeout: 5m }
limits: { maxSteps: 20 }
modelOverrides: { solve.worker: small }
EOF
git init -q
uwf --quiet workflow put registered.yaml >/dev/null
uwf --quiet remote add team "$WORK/team" >/dev/null
uwf --quiet remote add trusted host.example:threads --trust >/dev/null
