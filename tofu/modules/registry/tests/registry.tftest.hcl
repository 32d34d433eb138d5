mock_provider "aws" {
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/mock" }
  }
}

variables {
  name = "odc-test"
}

run "repositories_with_tags_that_never_move" {
  command = plan
  assert {
    condition     = alltrue([for repository in aws_ecr_repository.this : repository.image_tag_mutability == "IMMUTABLE"]) && length(aws_ecr_repository.this) == 2 && length(aws_iam_role.push) == 0
    error_message = "Two repositories, and no role without a pipeline."
  }
}

run "a_role_for_the_pipeline" {
  command = plan
  variables {
    push_principals = { ci = "arn:aws:iam::111122223333:role/ci" }
    public_cache    = true
  }
  assert {
    condition     = jsondecode(aws_iam_role.push[0].assume_role_policy).Statement[0].Principal.AWS == ["arn:aws:iam::111122223333:role/ci"] && length(aws_ecr_pull_through_cache_rule.this) == 3
    error_message = "Only the pipeline may assume the role."
  }
}

run "bad_values_are_refused" {
  command = plan
  variables {
    repositories    = ["Odcd"]
    kept_images     = 0
    push_principals = { ci = "*" }
  }
  expect_failures = [var.repositories, var.kept_images, var.push_principals]
}
