# Completion of uwf for PowerShell. Load it in your profile ($PROFILE):
#   uwf completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName uwf -ScriptBlock {
    param($typed, $ast, $cursor)
    $words = @($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
    if ($typed -eq '') { $words += '' }
    foreach ($line in (& $ast.CommandElements[0].ToString() __complete -- @words 2>$null)) {
        if ($line -eq ':files') { continue }
        $word, $help = $line -split "`t", 2
        if (-not $help) { $help = $word }
        # Quoted, unless it is a plain word: Enter must run nothing that is in it.
        if ($word -notmatch '^[\p{L}\p{M}\p{N}@./:=+_-]+$') { $word = "'" + $word.Replace("'", "''") + "'" }
        [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $help)
    }
}
