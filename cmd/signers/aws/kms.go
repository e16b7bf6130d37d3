package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"github.com/tempo-watchtower/watchtower/cmd/signers/program"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
	"github.com/tempo-watchtower/watchtower/infra/retryafter"
)

// custodian is AWS KMS.
//
// Source: https://docs.aws.amazon.com/kms/latest/APIReference, Sign and GetPublicKey.
type custodian struct{ client *kms.Client }

// connect reads the settings of AWS's own programs. The library does not retry: the caller knows
// how long a signature is of use.
func connect(ctx context.Context) (custodian, error) {
	settings, err := config.LoadDefaultConfig(ctx, config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		return custodian{}, fmt.Errorf("AWS settings: %w", err)
	}
	if settings.Region == "" {
		return custodian{}, errors.New("no region is set; set AWS_REGION, or a region in the AWS profile")
	}
	return custodian{kms.NewFromConfig(settings, func(o *kms.Options) { o.HTTPClient = limited{o.HTTPClient} })}, nil
}

// limited limits the size of answers.
type limited struct{ kms.HTTPClient }

func (l limited) Do(request *http.Request) (*http.Response, error) {
	response, err := l.HTTPClient.Do(request)
	if err == nil {
		program.Limit(response)
	}
	return response, err
}

// PublicKey reads a key's public key. It refuses a key that is not for signatures.
func (c custodian) PublicKey(ctx context.Context, key string) ([]byte, error) {
	out, err := c.client.GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: &key})
	if err != nil {
		return nil, meaning(ctx, err)
	}
	if out.KeyUsage != types.KeyUsageTypeSignVerify {
		return nil, keys.ErrBadKey.Because("the key is for %q, not for %s", out.KeyUsage, types.KeyUsageTypeSignVerify)
	}
	return out.PublicKey, nil
}

// Sign signs a digest. The algorithm's name includes SHA-256, but KMS checks only the length: it
// does not hash a digest again.
func (c custodian) Sign(ctx context.Context, key string, digest chain.Hash) ([]byte, error) {
	out, err := c.client.Sign(ctx, &kms.SignInput{
		KeyId: &key, Message: digest[:], MessageType: types.MessageTypeDigest,
		SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256,
	})
	if err != nil {
		return nil, meaning(ctx, err)
	}
	return out.Signature, nil
}

// meaning classifies an error of the library. KMS reports throttling by an error name, with
// status 400.
func meaning(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("no answer: %w", cause)
	}
	status, header := 0, http.Header{}
	if answer := (*awshttp.ResponseError)(nil); errors.As(err, &answer) && answer.Response != nil && answer.Response.Response != nil {
		status, header = answer.Response.StatusCode, answer.Response.Header
	}
	after := min(retryafter.Of(header), keys.MaxRetryAfter)
	named := smithy.APIError(nil)
	switch {
	case retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err) == aws.TrueTernary, status == http.StatusTooManyRequests:
		return &keys.Busy{Status: http.StatusTooManyRequests, After: after}
	case status >= 500:
		return &keys.Busy{Status: status, After: after}
	case errors.As(err, &named) && status >= 400:
		return keys.ErrRejected.Because("AWS KMS answered %s: %s", named.ErrorCode(), named.ErrorMessage())
	default: // no answer, or an unreadable one
		return err
	}
}
