package sarif

import "testing"

func TestRulesAboutCredentialsInCode(t *testing.T) {
	for _, tc := range []struct {
		reason string
		rule   Rule
		want   bool
	}{
		{"DevSkim", Rule{ID: "DS173237", Name: "DoNotStoreTokensOrKeysInSourceCode"}, true},
		{"DevSkim's sentence", Rule{ID: "DS117838", ShortDescription: "Do not store tokens or keys in source code."}, true},
		{"PMD", Rule{ID: "HardCodedCryptoKey"}, true},
		{"bandit", Rule{ID: "B105", Name: "hardcoded_password_string"}, true},
		{"Roslyn", Rule{ID: "CA5390", ShortDescription: "Do not hard-code encryption key"}, true},
		{"SonarQube", Rule{ID: "S2068", ShortDescription: "Credentials should not be hard-coded"}, true},
		{"checkov", Rule{ShortDescription: "Ensure no hard coded AWS access key and secret key exists in provider"}, true},
		{"KICS", Rule{Name: "Passwords And Secrets - Generic Password"}, true},
		{"a kind of key", Rule{ID: "detected-sendgrid-api-key"}, true},
		{"eslint-plugin-no-secrets", Rule{ID: "no-secrets/no-secrets"}, true},
		{"its rule for patterns", Rule{ID: "no-secrets/no-pattern-match"}, true},
		{"Biome", Rule{ID: "lint/security/noSecrets"}, true},
		{"a tag in words", Rule{ID: "R", Tags: []string{"hardcoded-secret"}}, true},
		{"a tag", Rule{ID: "R", Tags: []string{"security", "Secrets"}}, true},
		{"CodeQL", Rule{ID: "js/password-in-configuration-file", ShortDescription: "Password in configuration file"}, true},
		{"CodeQL, by its id alone", Rule{ID: "cs/password-in-configuration"}, true},
		{"CodeQL for Java", Rule{ShortDescription: "Cleartext Credentials in Properties File"}, true},
		{"Fortify", Rule{Name: "Password Management: Password in Configuration File"}, true},
		{"the title of CWE-13", Rule{ShortDescription: "ASP.NET Misconfiguration: Password in Configuration File"}, true},
		{"the title of CWE-555", Rule{Name: "J2EE Misconfiguration: Plaintext Password in Configuration File"}, true},
		{"the title of CWE-260", Rule{ShortDescription: "CWE-260: Password in Configuration File"}, true},
		{"a password that is stored", Rule{ShortDescription: "Password stored in configuration file"}, true},
		{"a password that is found", Rule{ShortDescription: "Password found in config file"}, true},
		{"a framework", Rule{ID: "spring-password-in-properties"}, true},
		{"YAML", Rule{ID: "password-in-yaml-file"}, true},
		{"credentials in source", Rule{ShortDescription: "Credentials in source code"}, true},
		{"a password in source", Rule{ShortDescription: "Password in source code"}, true},
		{"a qualified password in source", Rule{ShortDescription: "Plaintext database password in source code"}, true},
		{"a secret in source", Rule{ShortDescription: "Secret in source"}, true},
		{"a rule against passwords in code", Rule{ShortDescription: "No password in source code"}, true},
		{"a secret that is found", Rule{ShortDescription: "Secret detected"}, true},
		{"a provider's token that is found", Rule{ShortDescription: "GitHub personal access token detected"}, true},
		{"a secret without a provider", Rule{ShortDescription: "Generic secret"}, true},
		{"exposed", Rule{ShortDescription: "Exposed credentials"}, true},
		{"embedded", Rule{ShortDescription: "Embedded credentials"}, true},
		{"leaked", Rule{ShortDescription: "Leaked AWS secret access key"}, true},
		{"committed", Rule{ShortDescription: "Private key committed"}, true},
		{"in a repository", Rule{ShortDescription: "Private key checked into repository"}, true},
		{"a URL", Rule{ShortDescription: "Password in URL"}, true},
		{"a URL with a user", Rule{ShortDescription: "Username and password in URI"}, true},
		{"a connection string", Rule{ShortDescription: "Database password in connection string"}, true},
		{"Fortify, in a comment", Rule{Name: "Password Management: Password in Comment"}, true},
		{"Checkov, by its id alone", Rule{ID: "CKV_SECRET_2", ShortDescription: "AWS Access Key"}, true},
		{"Checkov, by its id alone", Rule{ID: "CKV_SECRET_6", ShortDescription: "Base64 High Entropy String"}, true},
		{"Checkov, by its id alone", Rule{ID: "CKV_SECRET_78", ShortDescription: "GitHub Token"}, true},
		{"the file has none", Rule{ShortDescription: "No password in configuration file"}, false},
		{"no password in the file", Rule{ID: "cs/empty-password-in-configuration", ShortDescription: "Empty password in configuration file"}, false},
		{"a program that stores one", Rule{ID: "cpp/cleartext-storage-file", ShortDescription: "Cleartext storage of sensitive information in file"}, false},
		{"no credential in the code", Rule{ID: "csrf", ShortDescription: "Missing CSRF token"}, false},
		{"the browser's storage", Rule{ShortDescription: "Do not store session tokens in localStorage"}, false},
		{"in code, by its name", Rule{Name: "NoSecretsInCode"}, true},
		{"logging, by its name", Rule{Name: "NoSecretsInLogs"}, false},
		{"logging", Rule{ShortDescription: "Ensure no secrets are logged"}, false},
		{"a tokenizer", Rule{ID: "hardcoded-tokenizer"}, false},
		{"a keyboard", Rule{Name: "HardcodedKeyboardLayout"}, false},
		{"an address", Rule{Name: "Hard-coded IP address"}, false},
		{"React", Rule{ID: "react/jsx-key", ShortDescription: "Missing key in iterator"}, false},
		{"permissions", Rule{ShortDescription: "Private key file is readable by all users"}, false},
		{"hashing", Rule{ShortDescription: "Passwords must be stored with a slow hash"}, false},
		{"no password in the string", Rule{ShortDescription: "No password in connection string"}, false},
		{"an empty one in the string", Rule{ShortDescription: "Empty password in connection string"}, false},
		{"an empty one", Rule{ShortDescription: "Empty password"}, false},
		{"the strength of passwords", Rule{ShortDescription: "Password strength"}, false},
		{"a setting of the repository", Rule{ShortDescription: "Secret scanning disabled"}, false},
		{"a program that sends one", Rule{ShortDescription: "Insecure transmission of credentials in URL parameters"}, false},
		{"a program that sends one, in short", Rule{ShortDescription: "Sending password in URL"}, false},
		{"a program that compares one", Rule{ShortDescription: "Insecure comparison of secret"}, false},
		{"a missing token that is found", Rule{ShortDescription: "Missing CSRF token detected"}, false},
		{"a service that is exposed", Rule{ShortDescription: "Exposed secrets endpoint"}, false},
		{"a program that loses one", Rule{ShortDescription: "Credentials leaked to log file"}, false},
		{"a secret that is not found", Rule{ShortDescription: "Secret not found"}, false},
		{"Checkov for a service", Rule{ID: "CKV_AWS_149", ShortDescription: "Ensure that Secrets Manager secret is encrypted using KMS"}, false},
		{"Kubernetes", Rule{ShortDescription: "Prefer using secrets as files over secrets as environment variables"}, false},
	} {
		if tc.rule.NamesSecret() != tc.want {
			t.Errorf("%s: %s %s %s: %v", tc.reason, tc.rule.ID, tc.rule.Name, tc.rule.ShortDescription, !tc.want)
		}
	}
}

func TestATagOfTheResultMarksASecret(t *testing.T) {
	got := parseResult(t, file(`"results":[{"ruleId":"R0","properties":{"tags":["secret"]}}]`))
	if !got.TaggedSecret || parseResult(t, file(`"results":[{"ruleId":"R0","properties":{"tags":["token"]}}]`)).TaggedSecret {
		t.Error("only the tag for secrets counts")
	}
}
